/* report.cpp: findings, and the source lines in them. */
#include "internal.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <unistd.h>

namespace simt
{

namespace
{

/* A place is the number of a source line that called a wrapper or, for an access that the
 * compiler announced, its program counter relative to the program. It has 32 bits, because the
 * shadow memory holds one for every access. */
constexpr uint32_t is_site = 0x80000000u;
std::vector<site> sites;
struct pending_text {
    size_t finding;
    uint32_t place, other;
};
std::vector<pending_text> pending;
std::map<uint32_t, std::string> resolved;

unsigned char *program_base()
{
    static unsigned char *base;
    if (!base) {
        Dl_info info;
        dladdr(reinterpret_cast<void *>(&name_places), &info);
        base = static_cast<unsigned char *>(info.dli_fbase);
    }
    return base;
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* addr2line prints "function at file:line" and then " (inlined by) ..." for each caller. */
std::string tidy(const std::string &line)
{
    size_t at = line.rfind(" at "), slash = line.rfind('/');
    if (at == std::string::npos)
        return line;
    size_t paren = line.find('(');
    std::string function = line.substr(0, paren < at ? paren : at);
    std::string where = line.substr(slash != std::string::npos && slash > at ? slash + 1 : at + 4);
    return where.substr(0, where.find(" (disc")) + " (" + function + ")";
}

void resolve(uint32_t place)
{
    if (place == 0 || resolved.count(place))
        return;
    if (place & is_site) {
        resolved[place] = place_name(place);
        return;
    }
    char program[512];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    /* The program counter is the return address, so the byte before it belongs to the call. */
    FILE *lines =
        popen(format("addr2line -Cfip -e '%s' 0x%x 2>/dev/null", program, place - 1).c_str(), "r");
    char line[1024] = "";
    std::string name;
    while (lines && fgets(line, sizeof line, lines)) {
        line[strcspn(line, "\n")] = 0;
        const char *caller = strstr(line, "(inlined by) ");
        name += (name.empty() ? "" : ", called from ") + tidy(caller ? caller + 13 : line);
    }
    if (lines)
        pclose(lines);
    resolved[place] = name.empty() ? format("program counter 0x%x", place) : name;
}

void replace(std::string &text, const char *what, const std::string &with)
{
    size_t at = text.find(what);
    if (at != std::string::npos)
        text.replace(at, strlen(what), with);
}

} // namespace

const char *fault_name(fault kind)
{
    static const char *const names[] = {"race",         "uninitialised", "bounds",
                                        "remote_start", "remote_exit",   "early",
                                        "deadlock",     "livelock",      "misuse"};
    return names[static_cast<int>(kind)];
}

bool outcome::has(fault kind) const
{
    for (const finding &f : findings)
        if (f.kind == kind)
            return true;
    return false;
}

std::string outcome::text() const
{
    std::string all;
    for (const finding &f : findings)
        all += std::string(fault_name(f.kind)) + ": " + f.text + "\n";
    return all;
}

std::string format(const char *text, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    return line;
}

uint32_t place_of(site at)
{
    /* Searches from the end, because a kernel calls wrappers from few lines and nearly always
     * from one that was found lately. */
    for (size_t i = sites.size(); i-- > 0;)
        if (sites[i].line == at.line && sites[i].file == at.file)
            return is_site | static_cast<uint32_t>(i);
    sites.push_back(at);
    return is_site | static_cast<uint32_t>(sites.size() - 1);
}

uint32_t place_of(const void *program_counter)
{
    return static_cast<uint32_t>(static_cast<const unsigned char *>(program_counter) -
                                 program_base());
}

std::string place_name(uint32_t place)
{
    if (place & is_site) {
        const site &s = sites[place & ~is_site];
        return format("%s:%d", base_name(s.file), s.line);
    }
    return resolved.count(place) ? resolved[place] : format("program counter 0x%x", place);
}

std::string thread_name(const thread *t)
{
    if (!t)
        return "nobody";
    return format("block %u thread %u", t->home->id, t->id - t->home->first);
}

std::string address_name(const void *address)
{
    const allocation *in = find_allocation(address);
    return format("%s+%td (of %zu)", in->name.c_str(),
                  static_cast<const unsigned char *>(address) - in->begin, in->bytes);
}

void report(fault kind, const std::string &text, uint32_t place, uint32_t other)
{
    outcome &result = state.result;
    for (const pending_text &p : pending)
        if (p.place == place && p.other == other && place &&
            result.findings[p.finding].kind == kind)
            return;
    if (result.findings.size() >= 64)
        return; /* one broken barrier can cause thousands of findings; the first ones are enough */
    result.findings.push_back({kind, std::string(state.config.kernel) + ": " + text});
    pending.push_back({result.findings.size() - 1, place, other});
}

void name_places()
{
    for (const pending_text &p : pending) {
        if (p.finding >= state.result.findings.size())
            continue;
        resolve(p.place);
        resolve(p.other);
        std::string &text = state.result.findings[p.finding].text;
        replace(text, "{1}", place_name(p.place));
        replace(text, "{2}", place_name(p.other));
    }
    pending.clear();
}

} // namespace simt
