// What Lanewise uses of the CUDA driver API, declared here so that nothing of CUDA is needed to build. Types, values
// and symbols are those of libcuda since CUDA 11.8 ("_v2" symbols are what cuda.h's plain names stand for).
#pragma once

#include <cstddef>
#include <cstdint>

namespace lanewise::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;

enum : CUresult {
  kSuccess = 0,
  kOutOfMemory = 2,
  kDeinitialized = 4,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kPeerAccessUnsupported = 217,
  kUnsupportedPtxVersion = 222,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kPeerAccessNotEnabled = 705,
  kTooManyPeers = 711,
  kNotPermitted = 800,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
};

enum Attribute : int {
  kMultiprocessorCount = 16,
  kAsyncEngineCount = 40,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kGpuDirectRdmaFlushOptions = 117,
  kGpuDirectRdmaWritesOrdering = 118,
  kDmaBufSupported = 124,
  kHostNumaId = 134,  // CUDA 12.2 and later
};

constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kEventBlockingSync = 1;  // who waits for it sleeps
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kRegisterPortable = 1;
constexpr unsigned kRegisterDeviceMap = 2;
// Memory as a dma-buf, which the driver of another device takes (cuMemGetHandleForAddressRange), and writes of such
// devices: ordered before what this GPU does later, or only once a host call has flushed them.
constexpr int kDmaBufHandle = 1;
constexpr int kWritesOrderedForOwner = 100;
constexpr int kFlushByHost = 1;  // a bit of the options
constexpr int kFlushCurrentContext = 0, kFlushToOwner = 100;
constexpr int kNumberOfRegisters = 4;  // a function's attribute
enum JitOption : int { kJitErrorLog = 5, kJitErrorLogBytes = 6 };

struct CUmemLocation {
  int type;
  int id;
};

// How cuMemcpyBatchAsync treats copies; the hints count for managed memory only.
struct CUmemcpyAttributes {
  int source_order;  // 1: sources are read in stream order
  CUmemLocation source_hint;
  CUmemLocation destination_hint;
  unsigned flags;
};

// One row: the name in the table of calls, the symbol in the library, the parameters.
#define LANEWISE_CUDA_CALLS(X)                                                                                         \
  X(cuInit, "cuInit", (unsigned flags))                                                                                \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int* version))                                                          \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char** text))                                         \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int* count))                                                                \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                      \
  X(cuDeviceGetName, "cuDeviceGetName", (char* name, int length, CUdevice device))                                     \
  X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char* name, int length, CUdevice device))                             \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, CUdevice device))                        \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (std::size_t* bytes, CUdevice device))                                    \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                      \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                                      \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))                                                      \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))                                                      \
  X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int* can, CUdevice device, CUdevice peer))                        \
  X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned flags))                                  \
  X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", (CUcontext peer))                                                \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (std::size_t* free, std::size_t* total))                                          \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * at, std::size_t bytes))                                                \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr at))                                                                       \
  X(cuMemHostRegister, "cuMemHostRegister_v2", (void* at, std::size_t bytes, unsigned flags))                          \
  X(cuMemHostUnregister, "cuMemHostUnregister", (void* at))                                                            \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr * device, void* host, unsigned flags))     \
  X(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange",                                                    \
    (void* handle, CUdeviceptr at, std::size_t bytes, int type, unsigned long long flags))                             \
  X(cuFlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites", (int target, int scope))                                 \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr at, unsigned char value, std::size_t bytes, CUstream stream))     \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream)) \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream))       \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream)) \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",                                                                            \
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes,                \
     CUstream stream))                                                                                                 \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                                             \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                     \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                          \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                                 \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                                  \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                                                         \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CUevent start, CUevent end))                       \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                                              \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                                          \
    (CUmodule * module, const void* image, unsigned count, int* options, void** values))                               \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char* name))            \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                               \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", (int* value, int attribute, CUfunction function))                        \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                                  \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra))

// The driver's functions. Those of newer drivers are null where the driver is older.
struct Calls {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define LANEWISE_CUDA_FIELD(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  LANEWISE_CUDA_CALLS(LANEWISE_CUDA_FIELD)
#undef LANEWISE_CUDA_FIELD

  // CUDA 12.8; CUDA 13.0 dropped the index of the copy that failed under a new symbol.
  CUresult (*cuMemcpyBatchAsync)(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                                 CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count,
                                 std::size_t* failed, CUstream stream) = nullptr;
  CUresult (*cuMemcpyBatchAsync_v2)(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                                    CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count,
                                    CUstream stream) = nullptr;
};

}  // namespace lanewise::cuda
