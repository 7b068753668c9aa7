#include "storage/cufile.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/failure.hpp"

namespace lanewise::storage {

namespace {

constexpr int kFileDescriptor = 1;     // how a file is named
constexpr unsigned kAllowsCompat = 1;  // bits of the driver's control flags and of its features
constexpr unsigned kPeerToPeer = 4;
constexpr int kDriverNotThere = 5001, kPlatform = 5007, kDevice = 5009, kFileType = 5018, kNotDirect = 5020,
              kNotRegistered = 5027, kNotOpened = 5031;

const char* says(int code) {
  switch (code) {
    case kDriverNotThere:
      return "nvidia-fs is not loaded, and compat mode is not allowed";
    case kPlatform:
      return "not supported on this platform";
    case kDevice:
      return "not supported by this GPU";
    case kFileType:
      return "not supported for this type of file";
    case kNotDirect:
      return "the file is not open for direct reads";
    case kNotRegistered:
      return "it knows nothing of the file's disk, which it asks udev for (cufile.log says what it lacks)";
    case kNotOpened:
      return "it could not open the file by its path (cufile.log says why)";
    default:
      return "see cufile.log, which it writes into the current folder";
  }
}

bool nvidia_fs() { return access("/proc/driver/nvidia-fs/version", F_OK) == 0; }

}  // namespace

template <typename Function>
void CuFile::find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr) {
    throw host::Failure(std::string("libcufile has no ") + symbol, "install GPUDirect Storage of CUDA 11.8 or later");
  }
}

CuFile::CuFile(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: it keeps threads of its own
  if (library == nullptr) {
    throw host::Failure("cuFile cannot be opened: " + std::string(dlerror()),
                        "install it (libcufile, pip install nvidia-cufile), or use --modes bounce,cached");
  }
  find(library, "cuFileDriverOpen", open_);
  find(library, "cuFileDriverClose", close_);
  find(library, "cuFileDriverGetProperties", properties_);
  find(library, "cuFileHandleRegister", register_);
  find(library, "cuFileHandleDeregister", deregister_);
  find(library, "cuFileBufRegister", buffer_register_);
  find(library, "cuFileBufDeregister", buffer_deregister_);
  find(library, "cuFileRead", read_);
  find(library, "cuFileWrite", write_);
  check(open_(), "cuFileDriverOpen");
}

CuFile::~CuFile() { close_(); }

CuFile::Handle CuFile::add(int file) const {
  Description description{};
  description.type = kFileDescriptor;
  description.of.file = file;
  Handle handle = nullptr;
  check(register_(&handle, &description), "cuFileHandleRegister");
  return handle;
}

bool CuFile::pin(cuda::CUdeviceptr data, std::size_t bytes) const {
  return buffer_register_(at(data), bytes, 0).code == 0;
}

ssize_t CuFile::read(Handle handle, cuda::CUdeviceptr data, std::size_t bytes, off_t offset, off_t data_offset) const {
  const ssize_t got = read_(handle, const_cast<void*>(at(data)), bytes, offset, data_offset);
  if (got < -1) check({static_cast<int>(-got), 0}, "cuFileRead");
  return got;
}

ssize_t CuFile::write(Handle handle, cuda::CUdeviceptr data, std::size_t bytes, off_t offset, off_t data_offset) const {
  const ssize_t put = write_(handle, at(data), bytes, offset, data_offset);
  if (put < -1) check({static_cast<int>(-put), 0}, "cuFileWrite");
  return put;
}

std::string CuFile::how() const {
  if (nvidia_fs()) return "cuFile, nvidia-fs";
  Properties properties{};
  const bool known = properties_(&properties).code == 0;
  if (known && (properties.features >> kPeerToPeer & 1U) != 0 &&
      (properties.driver.control >> kAllowsCompat & 1U) == 0) {
    return "cuFile, PCIe peer to peer";
  }
  return "cuFile in COMPAT MODE (nvidia-fs is not loaded)";
}

void CuFile::check(Error error, const std::string& call) {
  if (error.code == 0) return;
  throw host::Failure(call + ": error " + std::to_string(error.code) + ", " + says(error.code),
                      "use --modes bounce,cached, or see gdscheck -p for what GPUDirect Storage lacks here");
}

}  // namespace lanewise::storage
