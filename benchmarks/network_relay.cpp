// Joins two network namespaces through TAP devices, with what a kernel without netem lacks: delay, lost packets, a
// largest packet, a policed rate. Packets are forwarded in order.
//
//     network_relay NAMESPACE DEVICE NAMESPACE DEVICE DELAY_US LOST_PER_MILLION LARGEST_BYTES POLICED_MBIT QUEUE_BYTES
//
// The same both ways; 0 for no limit. Ends on a signal. Linux; needs root.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

using Microseconds = double;

Microseconds now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int open_tap(const std::string& name_space, const std::string& device) {
    const int home = open("/proc/self/ns/net", O_RDONLY);
    const int away = open(("/run/netns/" + name_space).c_str(), O_RDONLY);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
    if (away < 0 || setns(away, CLONE_NEWNET) != 0) {
        return -1;
    }
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    const bool made = tap >= 0 && ioctl(tap, TUNSETIFF, &request) == 0;
    setns(home, CLONE_NEWNET);
    return made ? tap : -1;
}

struct Packet {
    Microseconds due;
    std::vector<char> bytes;
};

struct Limits {
    Microseconds delay = 0;
    double lost = 0;
    std::size_t largest = 0;
    double bytes_per_us = 0;
    double queue_bytes = 0;
};

// One direction: what is read at one TAP and written to the other one.
class Direction {
public:
    Direction(int source, int sink, const Limits& limits) : source_(source), sink_(sink), limits_(limits) {}

    void take() {
        char buffer[65536];
        for (int count = 0; count < 64; ++count) {
            const ssize_t size = read(source_, buffer, sizeof buffer);
            if (size <= 0) {
                return;
            }
            const Microseconds at = now();
            if (passes(static_cast<std::size_t>(size), at)) {
                packets_.push_back({std::max(at, ends_) + limits_.delay, {buffer, buffer + size}});
            }
        }
    }

    void give() {
        const Microseconds at = now();
        while (!packets_.empty() && packets_.front().due <= at) {
            const auto& bytes = packets_.front().bytes;
            if (write(sink_, bytes.data(), bytes.size()) < 0) {
                std::perror("write");
            }
            packets_.pop_front();
        }
    }

    Microseconds due() const { return packets_.empty() ? 1e18 : packets_.front().due; }

private:
    bool passes(std::size_t size, Microseconds at) {
        constexpr std::size_t ethernet_header = 14;
        if (limits_.largest != 0 && size > limits_.largest + ethernet_header) {
            return false;
        }
        if (limits_.lost > 0 && chance_(generator_) < limits_.lost) {
            return false;
        }
        if (limits_.bytes_per_us > 0) {
            const Microseconds begins = std::max(at, ends_);
            if ((begins - at) * limits_.bytes_per_us > limits_.queue_bytes) {
                return false;
            }
            ends_ = begins + static_cast<double>(size) / limits_.bytes_per_us;
        }
        return true;
    }

    int source_;
    int sink_;
    Limits limits_;
    Microseconds ends_ = 0;
    std::deque<Packet> packets_;
    std::mt19937 generator_{7};
    std::uniform_real_distribution<double> chance_{0.0, 1.0};
};

}  // namespace

int main(int count, char** words) {
    if (count != 10) {
        std::fprintf(stderr, "see the head of network_relay.cpp\n");
        return 2;
    }
    const int near = open_tap(words[1], words[2]);
    const int far = open_tap(words[3], words[4]);
    if (near < 0 || far < 0) {
        std::perror("TAP");
        return 1;
    }
    prctl(PR_SET_TIMERSLACK, 1000UL);
    const Limits limits{std::atof(words[5]), std::atof(words[6]) * 1e-6, std::strtoul(words[7], nullptr, 10),
                        std::atof(words[8]) / 8, std::atof(words[9])};
    Direction forth(near, far, limits);
    Direction back(far, near, limits);
    while (true) {
        const Microseconds wait = std::clamp(std::min(forth.due(), back.due()) - now(), 0.0, 1e6);
        const timespec time{static_cast<time_t>(wait / 1e6), static_cast<long>(std::fmod(wait, 1e6) * 1e3)};
        pollfd both[] = {{near, POLLIN, 0}, {far, POLLIN, 0}};
        ppoll(both, 2, &time, nullptr);
        forth.take();
        back.take();
        forth.give();
        back.give();
    }
}
