// Reads attributes of /sys with C's stdio: a process that mixes copies of libstdc++ (its own static one and
// another library's) crashes in the locale facets that iostreams use.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace lanewise::host {

// The first line of a file without its end; empty if it cannot be read.
inline std::string first_line(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  std::string line;
  for (int byte = file ? std::fgetc(file.get()) : EOF; byte != EOF && byte != '\n'; byte = std::fgetc(file.get())) {
    line.push_back(static_cast<char>(byte));
  }
  return line;
}

}  // namespace lanewise::host
