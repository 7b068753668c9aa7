// A cuFile without GPUs, for the CUDA driver without GPUs, whose device memory is ordinary memory. FAKE_CUFILE_OPEN and
// FAKE_CUFILE_READ and FAKE_CUFILE_WRITE are errors to answer with; FAKE_CUFILE_NO_PIN refuses to register memory.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Error {
  int code, cuda;
};

int set(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::atoi(value);
}

int live = 0;

}  // namespace

extern "C" {

int fake_cufile_live() { return live; }

Error cuFileDriverOpen() {
  if (set("FAKE_CUFILE_OPEN") == 0) ++live;
  return {set("FAKE_CUFILE_OPEN"), 0};
}

Error cuFileDriverClose() {
  --live;
  return {0, 0};
}

Error cuFileDriverGetProperties(void* properties) {
  std::memset(properties, 0, 64);
  return {0, 0};
}

Error cuFileHandleRegister(void** handle, void* description) {
  int file = 0;
  std::memcpy(&file, static_cast<char*>(description) + 8, sizeof file);
  if ((fcntl(file, F_GETFL) & O_DIRECT) == 0) return {5020, 0};
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  // It opens the file once more by its path, which a file without a name does not have.
  if (readlink(link.c_str(), path, sizeof path - 1) < 0 || access(path, F_OK) != 0) return {5031, 0};
  *handle = new int(file);
  ++live;
  return {0, 0};
}

void cuFileHandleDeregister(void* handle) {
  delete static_cast<int*>(handle);
  --live;
}

Error cuFileBufRegister(const void*, std::size_t, int) {
  if (set("FAKE_CUFILE_NO_PIN") != 0) return {5016, 0};
  ++live;
  return {0, 0};
}

Error cuFileBufDeregister(const void*) {
  --live;
  return {0, 0};
}

ssize_t cuFileRead(void* handle, void* data, std::size_t bytes, off_t offset, off_t data_offset) {
  if (set("FAKE_CUFILE_READ") != 0) return -set("FAKE_CUFILE_READ");
  return pread(*static_cast<int*>(handle), static_cast<char*>(data) + data_offset, bytes, offset);
}

ssize_t cuFileWrite(void* handle, const void* data, std::size_t bytes, off_t offset, off_t data_offset) {
  if (set("FAKE_CUFILE_WRITE") != 0) return -set("FAKE_CUFILE_WRITE");
  return pwrite(*static_cast<int*>(handle), static_cast<const char*>(data) + data_offset, bytes, offset);
}
}
