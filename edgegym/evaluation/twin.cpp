// The simulator's event loop once more, in C++: load-aware routing by live backlogs with an exact
// search, radio flights, FIFO nodes with exponential service, all statistics of a window. Same
// algorithm and same arithmetic, so from the same requests come the same numbers to the digit.
//
// Usage: twin WORLD            serve the requests of the file, print what was counted
//        twin WORLD REQUESTS REPEATS
//                              draw requests; after a first run, print those of each run per
//                              second of processor time
//
// WORLD is a file of doubles, in the order in which `World` reads them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <utility>
#include <vector>

using i64 = std::int64_t;
using std::vector;

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double TICKS_PER_S = 1073741824.0;
constexpr int BLOCK = 4096, LEAF = 8, AHEAD = 4, ROWS = 1;
constexpr int SUB_LOG2 = 6, MIN_LOG2 = -10, MAX_LOG2 = 14;
constexpr int BINS = ((MAX_LOG2 - MIN_LOG2) << SUB_LOG2) + 2;
constexpr double SCORE_SLACK = 1.0 + 1e-12, DISC_SLACK = 1.0 + 1e-9, CELL_SLACK = 1e-9;

static i64 ticks(double seconds) { return i64(seconds * TICKS_PER_S + 0.5); }
static i64 bits_of(double value) {
    i64 bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct World {
    double width, height, xi, alpha, base_s, pages_per_s, rate_per_s, until_s;
    bool periodic;
    i64 nodes, types, holdings, families, cells_x, cells_y, pages, requests;
    vector<double> x, y, request_s, prefill_s, least_prefill_s, decode_s, target_s, cold_s, output,
        hits, share, time, user_x, user_y, mark;
    vector<i64> holds, slots, family, type;

    explicit World(const char* path) {
        std::FILE* file = std::fopen(path, "rb");
        if (!file) std::exit(2);
        double head[17];
        read(file, head, 17);
        width = head[0], height = head[1], periodic = head[2] != 0.0, xi = head[3];
        alpha = head[4], base_s = head[5], pages_per_s = head[6], rate_per_s = head[7];
        until_s = head[8], nodes = i64(head[9]), types = i64(head[10]), holdings = i64(head[11]);
        families = i64(head[12]), cells_x = i64(head[13]), cells_y = i64(head[14]);
        pages = i64(head[15]), requests = i64(head[16]);
        x = doubles(file, nodes), y = doubles(file, nodes), holds = whole(file, nodes);
        slots = whole(file, nodes), request_s = doubles(file, nodes);
        prefill_s = doubles(file, holdings * types), least_prefill_s = doubles(file, types);
        decode_s = doubles(file, types), target_s = doubles(file, types);
        cold_s = doubles(file, types), output = doubles(file, types);
        hits = doubles(file, holdings * types), family = whole(file, types);
        share = doubles(file, types), time = doubles(file, requests);
        user_x = doubles(file, requests), user_y = doubles(file, requests);
        mark = doubles(file, requests), type = whole(file, requests);
        std::fclose(file);
    }

   private:
    static void read(std::FILE* file, double* into, i64 count) {
        if (i64(std::fread(into, sizeof(double), count, file)) != count) std::exit(3);
    }
    static vector<double> doubles(std::FILE* file, i64 count) {
        vector<double> values(count);
        read(file, values.data(), count);
        return values;
    }
    static vector<i64> whole(std::FILE* file, i64 count) {
        vector<double> values = doubles(file, count);
        return vector<i64>(values.begin(), values.end());
    }
};

enum Kind : i64 { SLOT_END = 0, LANDING = 4 };
enum Status : std::uint8_t { FREE, IN_FLIGHT, QUEUED, ACTIVE, SLOT_FREED };
enum Counted : std::uint8_t { DECISION = 1, FIRST_TOKEN = 2 };

struct alignas(64) Record {
    double arrival, join, start, first, mark;
    std::int32_t type, node, holds, next;
    Status status;
    std::uint8_t counted;
};
struct alignas(64) Node {
    std::int32_t active, queued, in_flight, slots, reported, holds, place, head, tail;
    double request_s;
    i64 accrued, busy, capacity, prefill;
};
struct alignas(32) Site {
    double x, y, wait;
    std::int32_t node, holds;
};
struct Event {
    double time;
    i64 order;
    std::int32_t node, record;
    i64 kind() const { return order >> 56; }
    bool before(const Event& other) const {
        return time < other.time || (time == other.time && order < other.order);
    }
};

class Heap {
   public:
    bool empty() const { return events_.empty(); }
    const Event& first() const { return events_[0]; }
    void push(const Event& event) {
        std::size_t hole = events_.size();
        events_.push_back(event);
        while (hole > 0) {
            std::size_t parent = (hole - 1) / 2;
            if (events_[parent].before(event)) break;
            events_[hole] = events_[parent];
            hole = parent;
        }
        events_[hole] = event;
    }
    void replace(const Event& event) {
        std::size_t hole = 0, size = events_.size();
        for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
            if (child + 1 < size && events_[child + 1].before(events_[child])) ++child;
            if (event.before(events_[child])) break;
            events_[hole] = events_[child];
            hole = child;
        }
        events_[hole] = event;
    }
    void pop() {
        Event last = events_.back();
        events_.pop_back();
        if (!events_.empty()) replace(last);
    }

   private:
    vector<Event> events_;
};

struct alignas(64) Leaf {
    Event events[LEAF];
};
// Where one is among the entries of a page; over where the entry is not before the end.
struct Walk {
    i64 entry = 0, end = 0, leaf = -1;
};

class Queue {
   public:
    Queue(i64 pages, double pages_per_s)
        : head_(pages, -1), mask_(pages - 1), pages_per_s_(pages_per_s) {}
    double first_s() const { return soon.empty() ? INF : soon.first().time; }
    void push(double time, Kind kind, std::int32_t node, std::int32_t record) {
        put({time, (i64(kind) << 56) + sequence_++, node, record});
    }
    void replace(double time, Kind kind, std::int32_t node, std::int32_t record) {
        Event event{time, (i64(kind) << 56) + sequence_++, node, record};
        if (page_of(time) <= current_) {
            soon.replace(event);
        } else {
            soon.pop();
            put(event);
        }
    }
    void turn_page(double limit_s) {
        i64 last = page_of(limit_s), page = current_;
        if (!later_.empty()) last = std::min(last, page_of(later_.first().time));
        if (waiting_ == 0) {
            page = std::max(page, last);
        } else {
            while (page < last) {
                if (head_[++page & mask_] >= 0) {
                    pour(page);
                    break;
                }
            }
        }
        current_ = page;
        while (!later_.empty() && page_of(later_.first().time) <= page) {
            soon.push(later_.first());
            later_.pop();
        }
    }
    // Walks over the entries of the next page and of the one after it.
    void walk_ahead() {
        i64 leaf = head_[(current_ + 3) & mask_] >> 4;
        if (leaf >= 0) fetch_leaf(leaf);
        __builtin_prefetch(&head_[(current_ + 10) & mask_]);
        near = walk(current_ + 1), far = walk(current_ + 2);
    }
    const Event* next(Walk& walk) {
        if (walk.entry >= walk.end) return nullptr;
        const Event* event = &leaves_[walk.entry / LEAF].events[walk.entry % LEAF];
        if (++walk.entry == walk.end) {
            i64 leaf = walk.leaf;
            walk = Walk{};
            if (leaf >= 0) {
                walk = {leaf * LEAF, leaf * LEAF + LEAF, following_[leaf]};
                if (walk.leaf >= 0) fetch_leaf(walk.leaf);
            }
        }
        return event;
    }
    Heap soon;
    Walk near, far;

   private:
    i64 page_of(double time) const { return i64(std::min(time * pages_per_s_, 0x1p62)); }
    void put(const Event& event) {
        i64 page = page_of(event.time);
        if (page <= current_) {
            soon.push(event);
        } else if (page - current_ <= mask_) {
            write(page, event);
        } else {
            later_.push(event);
        }
    }
    void write(i64 page, const Event& event) {
        i64& head = head_[page & mask_];
        i64 leaf = head >> 4, used = head & 15;
        if (head < 0 || used == LEAF) {
            i64 full = head >= 0 ? leaf : -1;
            if (free_ >= 0) {
                leaf = free_;
                free_ = following_[leaf];
            } else {
                leaf = i64(leaves_.size());
                leaves_.emplace_back();
                following_.push_back(-1);
            }
            following_[leaf] = full;
            used = 0;
        }
        leaves_[leaf].events[used] = event;
        head = (leaf << 4) + used + 1;
        ++waiting_;
    }
    Walk walk(i64 page) const {
        i64 head = head_[page & mask_], leaf = head >> 4;
        if (head < 0) return {};
        return {leaf * LEAF, leaf * LEAF + (head & 15), following_[leaf]};
    }
    void fetch_leaf(i64 leaf) const {
        for (int line = 0; line < 3; ++line)
            __builtin_prefetch(reinterpret_cast<const char*>(&leaves_[leaf]) + 64 * line);
        __builtin_prefetch(&following_[leaf]);
    }
    void pour(i64 page) {
        i64 head = head_[page & mask_], leaf = head >> 4, used = head & 15;
        head_[page & mask_] = -1;
        while (leaf >= 0) {
            for (i64 entry = 0; entry < used; ++entry) soon.push(leaves_[leaf].events[entry]);
            waiting_ -= used;
            i64 next = following_[leaf];
            following_[leaf] = free_;
            free_ = leaf;
            leaf = next;
            used = LEAF;
        }
    }
    Heap later_;
    vector<i64> head_, following_;
    vector<Leaf> leaves_;
    i64 mask_, current_ = 0, waiting_ = 0, free_ = -1, sequence_ = 0;
    double pages_per_s_;
};

struct Request {
    double time, x, y, mark;
    std::int32_t type;
};

// Requests in blocks, from the world's file or drawn.
class Stream {
   public:
    explicit Stream(const World& world) : world_(world), random_(1) { block_.reserve(BLOCK); }
    // The next request, null after the last.
    const Request* next() {
        return position_ < block_.size() || fill() ? &block_[position_] : nullptr;
    }
    void take() { ++position_; }
    const Request* ahead(std::size_t offset) const {
        return position_ + offset < block_.size() ? &block_[position_ + offset] : nullptr;
    }

   private:
    bool fill() {
        block_.clear();
        position_ = 0;
        if (world_.requests > 0) {
            for (; done_ < world_.requests && block_.size() < BLOCK; ++done_)
                block_.push_back({world_.time[done_], world_.user_x[done_], world_.user_y[done_],
                                  world_.mark[done_], std::int32_t(world_.type[done_])});
            return !block_.empty();
        }
        while (block_.size() < BLOCK) {
            now_s_ += exponential() / world_.rate_per_s;
            double draw = uniform();
            std::int32_t type = 0;
            while (type + 1 < world_.types && draw >= world_.share[type])
                draw -= world_.share[type++];
            double x = uniform() * world_.width, y = uniform() * world_.height;
            block_.push_back({now_s_, x, y, exponential(), type});
        }
        return true;
    }
    double uniform() { return double(random_() >> 11) * 0x1p-53; }
    double exponential() { return -std::log(1.0 - uniform()); }
    const World& world_;
    std::mt19937_64 random_;
    vector<Request> block_;
    std::size_t position_ = 0;
    i64 done_ = 0;
    double now_s_ = 0.0;
};

struct Best {
    double least = INF, chosen_squared = INF, closest = INF;
    std::int32_t chosen = -1, nearest = -1;
};

class Fleet {
   public:
    i64 arrivals = 0, decided = 0, hits = 0, first_tokens = 0, completed = 0, radio = 0, wait = 0,
        prefill = 0, cold = 0, hit_tokens = 0, goodput = 0;
    vector<i64> histogram, families, nearest_demand;
    vector<Node> nodes;

    explicit Fleet(const World& world)
        : histogram(BINS),
          families(3 * world.families),
          nearest_demand(world.nodes * world.families),
          nodes(world.nodes),
          w_(world),
          stream_(world),
          queue_(world.pages, world.pages_per_s),
          sites_(world.nodes) {
        lay_out();
    }

    void advance(double until) {
        bool ahead = w_.nodes >= 1000;
        i64 nobody = 0;
        // Of the last request: what is counted and noted when its memory has come.
        i64* pending = &nobody;
        std::int32_t routed = -1;
        auto catch_up = [&] {
            ++*pending;
            pending = &nobody;
            if (routed >= 0) note(nodes[routed]);
            routed = -1;
        };
        while (true) {
            const Request* request = stream_.next();
            double next_request = request ? request->time : INF;
            if (queue_.soon.empty()) {
                queue_.turn_page(std::min(next_request, until));
                if (ahead) queue_.walk_ahead();
            }
            if (const Event* event = queue_.next(queue_.far)) fetch_own(*event);
            if (const Event* event = queue_.next(queue_.near)) fetch_others(*event);
            double next_event = queue_.first_s();
            if (std::min(next_event, next_request) > until) break;
            if (next_request < next_event) {
                if (ahead) fetch();
                Best best = search(request->x, request->y, request->type);
                // The last request can only have made its own node worse.
                bool again = best.chosen == routed;
                catch_up();
                if (again) best = search(request->x, request->y, request->type);
                ++arrivals;
                i64 family = w_.family[request->type];
                ++families[family];
                pending = &nearest_demand[best.nearest * w_.families + family];
                __builtin_prefetch(pending);
                if (send(best, *request)) routed = best.chosen;
                stream_.take();
                continue;
            }
            const Event event = queue_.soon.first();
            if (event.node == routed) catch_up();
            if (event.kind() == LANDING)
                land(event);
            else
                leave(event, until);
        }
        catch_up();
        settle(until);
        for (Node& node : nodes) accrue(node, until);
    }

   private:
    void lay_out() {
        i64 cells = w_.cells_x * w_.cells_y;
        vector<i64> cell(w_.nodes);
        cell_start_.assign(cells + 1, 0);
        double cell_width = w_.width / w_.cells_x, cell_height = w_.height / w_.cells_y;
        for (i64 n = 0; n < w_.nodes; ++n) {
            i64 column = std::min(i64(w_.x[n] / cell_width), w_.cells_x - 1);
            i64 row = std::min(i64(w_.y[n] / cell_height), w_.cells_y - 1);
            cell[n] = row * w_.cells_x + column;
            ++cell_start_[cell[n] + 1];
        }
        for (i64 c = 0; c < cells; ++c) cell_start_[c + 1] += cell_start_[c];
        vector<i64> place(cell_start_.begin(), cell_start_.end() - 1);
        for (i64 n = 0; n < w_.nodes; ++n) {
            Node& node = nodes[n];
            node = Node{};
            node.slots = std::int32_t(w_.slots[n]), node.holds = std::int32_t(w_.holds[n]);
            node.request_s = w_.request_s[n], node.place = std::int32_t(place[cell[n]]++);
            sites_[node.place] = {w_.x[n], w_.y[n], 0.0, std::int32_t(n), node.holds};
            advertise(node);
        }
    }

    double radio_beyond_base(double squared) const {
        return w_.alpha == 2.0 ? w_.xi * squared : w_.xi * std::pow(squared, 0.5 * w_.alpha);
    }
    static double axis(double a, double b, double period) {
        double direct = std::fabs(a - b), around = period - direct;
        return around < direct ? around : direct;
    }
    double disc(const Best& best, std::int32_t type) const {
        double radio_s = std::max(best.least * SCORE_SLACK - w_.least_prefill_s[type], 0.0);
        double squared = radio_s / w_.xi;
        if (w_.alpha != 2.0) squared = std::pow(squared, 2.0 / w_.alpha);
        return std::max(squared, best.closest) * DISC_SLACK;
    }
    void seek(Best& best, i64 begin, i64 end, double x, double y, std::int32_t type) const {
        double width = w_.periodic ? w_.width : 1e300, height = w_.periodic ? w_.height : 1e300;
        for (i64 place = begin; place < end; ++place) {
            const Site& site = sites_[place];
            double dx = axis(site.x, x, width), dy = axis(site.y, y, height);
            double squared = dx * dx + dy * dy;
            double value = radio_beyond_base(squared) +
                           (w_.prefill_s[site.holds * w_.types + type] + site.wait);
            if (squared < best.closest || (squared == best.closest && site.node < best.nearest))
                best.closest = squared, best.nearest = site.node;
            if (value < best.least || (value == best.least && site.node < best.chosen))
                best.least = value, best.chosen = site.node, best.chosen_squared = squared;
        }
    }
    Best search(double x, double y, std::int32_t type) const {
        const i64 cells_x = w_.cells_x, cells_y = w_.cells_y;
        double columns_per_km = cells_x / w_.width, cell_height = w_.height / cells_y;
        double column = x * columns_per_km;
        i64 home_y = std::min(i64(y / cell_height), cells_y - 1);
        i64 home_x = std::min(i64(column), cells_x - 1);
        i64 below = w_.periodic ? cells_y / 2 : home_y;
        i64 above = w_.periodic ? cells_y / 2 : cells_y - 1 - home_y;
        double inset = y - home_y * cell_height;
        i64 seed = std::min(cell_start_[home_y * cells_x + home_x], w_.nodes - 1);
        Best best;
        seek(best, seed, seed + 1, x, y, type);
        for (i64 ring = 0; ring <= std::max(below, above); ++ring) {
            bool touched = false;
            double disc_squared = disc(best, type);
            for (int side = 0; side < (ring > 0 ? 2 : 1); ++side) {
                i64 offset = side == 0 ? ring : -ring;
                if (offset > above || -offset > below) continue;
                double gap = side == 0 ? ring * cell_height - inset
                                       : inset + (ring - 1) * cell_height;
                gap = ring > 0 ? std::max(gap - CELL_SLACK * cell_height, 0.0) : 0.0;
                double chord_squared = disc_squared - gap * gap;
                if (chord_squared < 0.0) continue;
                touched = true;
                i64 row = home_y + offset;
                row = (row < 0 ? row + cells_y : row >= cells_y ? row - cells_y : row) * cells_x;
                double reach = std::min(std::sqrt(chord_squared) * columns_per_km + CELL_SLACK,
                                        2.0 * cells_x);
                i64 first = i64(std::floor(column - reach)), last = i64(std::floor(column + reach));
                if (!w_.periodic)
                    first = std::max(first, i64(0)), last = std::min(last, cells_x - 1);
                else if (last - first >= cells_x)
                    first = 0, last = cells_x - 1;
                if (first < 0 || last >= cells_x) {
                    if (first < 0) first += cells_x, last += cells_x;
                    run(best, row, first, cells_x - 1, x, y, type);
                    run(best, row, 0, last - cells_x, x, y, type);
                } else {
                    run(best, row, first, last, x, y, type);
                }
            }
            if (!touched) break;
        }
        return best;
    }
    void run(Best& best, i64 row, i64 left, i64 right, double x, double y, std::int32_t type) const {
        seek(best, cell_start_[row + left], cell_start_[row + right + 1], x, y, type);
    }
    void fetch() const {
        const Request *later = stream_.ahead(2 * AHEAD), *soon = stream_.ahead(AHEAD);
        if (!later) return;
        for (int offset = -ROWS; offset <= ROWS; ++offset) {
            auto [begin, end] = nearby(*later, offset);
            __builtin_prefetch(&cell_start_[begin]);
            __builtin_prefetch(&cell_start_[end]);
            auto [first, last] = nearby(*soon, offset);
            for (i64 place = cell_start_[first]; place < cell_start_[last]; place += 2)
                __builtin_prefetch(&sites_[place]);
        }
    }
    // The cell left of the one some rows above a request, and the cell after its right one.
    std::pair<i64, i64> nearby(const Request& request, int offset) const {
        i64 column = std::min(i64(request.x * w_.cells_x / w_.width), w_.cells_x - 1);
        i64 row = std::min(i64(request.y * w_.cells_y / w_.height), w_.cells_y - 1) + offset;
        row = std::min(std::max(row, i64(0)), w_.cells_y - 1) * w_.cells_x;
        return {row + std::max(column - 1, i64(0)), row + std::min(column + 2, w_.cells_x)};
    }
    void fetch_own(const Event& event) const {
        __builtin_prefetch(&records_[event.record]);
        __builtin_prefetch(&nodes[event.node]);
        __builtin_prefetch(reinterpret_cast<const char*>(&nodes[event.node]) + 64);
    }
    // What else an event will touch; its node has been asked for long before.
    void fetch_others(const Event& event) const {
        const Node& node = nodes[event.node];
        bool leaves = event.kind() == SLOT_END;
        if (leaves) __builtin_prefetch(&sites_[node.place]);
        if (node.queued > 0) __builtin_prefetch(&records_[leaves ? node.head : node.tail]);
    }
    void note(Node& node) {
        ++node.reported;
        advertise(node);
        ++node.in_flight;
    }

    void advertise(Node& node) {
        std::int32_t ahead = std::max(0, node.reported - node.slots + 1);
        sites_[node.place].wait = ahead * node.request_s;
    }
    void accrue(Node& node, double now) {
        i64 tick = ticks(now), elapsed = tick - node.accrued;
        node.busy += node.active * elapsed;
        node.capacity += node.slots * elapsed;
        node.accrued = tick;
    }
    // Send a request; return whether its node is still to be told.
    bool send(const Best& best, const Request& request) {
        std::int32_t index = free_;
        if (index >= 0) {
            free_ = records_[index].next;
        } else {
            index = std::int32_t(records_.size());
            records_.emplace_back();
        }
        Record& record = records_[index];
        record.arrival = request.time, record.mark = request.mark, record.type = request.type;
        record.status = IN_FLIGHT, record.node = best.chosen, record.counted = 0;
        double join = request.time + (w_.base_s + radio_beyond_base(best.chosen_squared));
        if (join > request.time) {
            __builtin_prefetch(&nodes[best.chosen]);
            queue_.push(join, LANDING, best.chosen, index);
            return true;
        }
        note(nodes[best.chosen]);
        double end = join_node(best.chosen, index, request.time);
        if (end >= 0.0) queue_.push(end, SLOT_END, best.chosen, index);
        return false;
    }
    double start(Node& node, Record& record, double now) {
        double prefill_s = w_.prefill_s[node.holds * w_.types + record.type];
        record.status = ACTIVE, record.holds = node.holds, record.start = now;
        record.first = now + prefill_s;
        return now + (prefill_s + w_.decode_s[record.type]) * record.mark;
    }
    double join_node(std::int32_t at, std::int32_t index, double now) {
        Node& node = nodes[at];
        Record& record = records_[index];
        --node.in_flight;
        record.join = now;
        if (node.active >= node.slots) {
            record.status = QUEUED, record.next = -1;
            if (node.queued == 0)
                node.head = index;
            else
                records_[node.tail].next = index;
            node.tail = index;
            ++node.queued;
            return -1.0;
        }
        accrue(node, now);
        ++node.active;
        return start(node, record, now);
    }
    void land(const Event& event) {
        double end = join_node(event.node, event.record, event.time);
        if (end < 0.0)
            queue_.soon.pop();
        else
            queue_.replace(end, SLOT_END, event.node, event.record);
    }
    void leave(const Event& event, double until) {
        Node& node = nodes[event.node];
        Record& record = records_[event.record];
        ++completed;
        if (record.first > until) {
            record.status = SLOT_FREED;
        } else {
            if (!(record.counted & FIRST_TOKEN)) count_first_token(record);
            release(event.record);
        }
        --node.reported;
        advertise(node);
        if (node.queued > 0 && node.active <= node.slots) {
            std::int32_t following = node.head;
            node.head = records_[following].next;
            --node.queued;
            double end = start(node, records_[following], event.time);
            queue_.replace(end, SLOT_END, event.node, following);
            return;
        }
        accrue(node, event.time);
        --node.active;
        queue_.soon.pop();
    }
    void release(std::int32_t index) {
        records_[index].status = FREE;
        records_[index].next = free_;
        free_ = index;
    }
    void count_decision(std::int32_t type, bool hit) {
        ++decided;
        ++families[w_.families + w_.family[type]];
        if (hit) {
            ++hits;
            ++families[2 * w_.families + w_.family[type]];
            goodput += i64(w_.output[type]);
        }
    }
    void count_first_token(const Record& record) {
        if (!(record.counted & DECISION))
            count_decision(record.type, record.first <= record.arrival + w_.target_s[record.type]);
        i64 spent = ticks(record.first - record.start);
        ++first_tokens;
        radio += ticks(record.join - record.arrival);
        wait += ticks(record.start - record.join);
        prefill += spent;
        cold += ticks(w_.cold_s[record.type]);
        hit_tokens += i64(w_.hits[record.holds * w_.types + record.type]);
        nodes[record.node].prefill += spent;
        i64 bin = (bits_of(record.first - record.arrival) >> (52 - SUB_LOG2)) -
                  (i64(1023 + MIN_LOG2) << SUB_LOG2) + 1;
        ++histogram[std::min(std::max(bin, i64(0)), i64(BINS - 1))];
    }
    void settle(double until) {
        for (std::size_t index = 0; index < records_.size(); ++index) {
            Record& record = records_[index];
            const Record& later = records_[std::min(index + 16, records_.size() - 1)];
            __builtin_prefetch(&nodes[later.node].prefill);
            if (record.status == FREE || (record.counted & FIRST_TOKEN)) continue;
            bool has_slot = record.status == ACTIVE || record.status == SLOT_FREED;
            if (has_slot && record.first <= until) {
                count_first_token(record);
                record.counted = DECISION | FIRST_TOKEN;
                if (record.status == SLOT_FREED) release(std::int32_t(index));
            } else if (!(record.counted & DECISION) &&
                       record.arrival + w_.target_s[record.type] <= until) {
                count_decision(record.type, false);
                record.counted |= DECISION;
            }
        }
    }

    const World& w_;
    Stream stream_;
    Queue queue_;
    vector<Site> sites_;
    vector<i64> cell_start_;
    vector<Record> records_;
    std::int32_t free_ = -1;
};

static void print_list(const char* name, const vector<i64>& values) {
    std::printf(", \"%s\": [", name);
    for (std::size_t k = 0; k < values.size(); ++k)
        std::printf(k ? ", %lld" : "%lld", static_cast<long long>(values[k]));
    std::printf("]");
}

int main(int count, char** arguments) {
    if (count != 2 && count != 4) return 1;
    World world(arguments[1]);
    Fleet fleet(world);
    if (count == 2) {
        fleet.advance(world.until_s);
        vector<i64> busy, capacity, prefill;
        for (const Node& node : fleet.nodes) {
            busy.push_back(node.busy);
            capacity.push_back(node.capacity);
            prefill.push_back(node.prefill);
        }
        std::printf("{\"name\": \"twin\"");
        print_list("counters", {fleet.arrivals, fleet.decided, fleet.hits, fleet.first_tokens,
                                fleet.completed, 0, fleet.radio, fleet.wait, fleet.prefill,
                                fleet.cold, fleet.hit_tokens, fleet.goodput, 0, 0});
        print_list("families", fleet.families);
        print_list("ttft_histogram", fleet.histogram);
        print_list("busy_ticks", busy);
        print_list("capacity_ticks", capacity);
        print_list("prefill_ticks", prefill);
        print_list("nearest_demand", fleet.nearest_demand);
        std::printf("}\n");
        return 0;
    }
    double now_s = 5.0, window_s = std::atof(arguments[2]) / world.rate_per_s;
    fleet.advance(now_s);
    for (int repeat = 0; repeat < std::atoi(arguments[3]); ++repeat) {
        i64 before = fleet.arrivals;
        std::clock_t begin = std::clock();
        fleet.advance(now_s += window_s);
        double spent_s = double(std::clock() - begin) / CLOCKS_PER_SEC;
        std::printf("%.17g\n", double(fleet.arrivals - before) / spent_s);
    }
}
