#include "dispatch/shared_memory.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "host/failure.hpp"

namespace lanewise::dispatch {

namespace {

constexpr std::size_t kPage = 4096;
// Who has mapped it may rely on its size: access beyond the end of a file that shrank would end the process.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

host::Failure no_memory(std::size_t bytes, int error) {
  return host::system_failure(std::to_string(bytes >> 20) + " MiB of shared memory cannot be had", error,
                              "ask for fewer transactions in flight (--depth), or allow more memory");
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes, int node) : SharedMemory() {
  size_ = (bytes + kPage - 1) / kPage * kPage;
  // By its number: glibc has a function for it since 2.27 only, and a wheel runs with 2.17.
  fd_ = static_cast<int>(syscall(SYS_memfd_create, "lanewise", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size_)) != 0) throw no_memory(size_, errno);
  map_whole();
  host::bind_pages(data_, size_, node);
  // The pages are taken now: later the process would be ended by SIGBUS where there are none.
  int error = posix_fallocate(fd_, 0, static_cast<off_t>(size_));
  if (error == 0 && fcntl(fd_, F_ADD_SEALS, kSeals) != 0) error = errno;
  if (error != 0) throw no_memory(size_, error);
}

std::shared_ptr<SharedMemory> SharedMemory::map(int fd, std::size_t bytes) {
  const std::shared_ptr<SharedMemory> memory(new SharedMemory);
  memory->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  struct stat about{};
  const int seals = memory->fd_ < 0 ? -1 : fcntl(memory->fd_, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(memory->fd_, &about) != 0 ||
      static_cast<std::size_t>(about.st_size) < bytes) {
    throw host::Failure("the node's shared memory is not what it said",
                        "use the same version of Lanewise on both sides");
  }
  memory->size_ = static_cast<std::size_t>(about.st_size);
  memory->map_whole();
  return memory;
}

void SharedMemory::map_whole() {
  void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) throw no_memory(size_, errno);
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

}  // namespace lanewise::dispatch
