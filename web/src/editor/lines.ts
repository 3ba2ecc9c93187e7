//! Texts as lines: what two have in common, and what comes of two changes of one text. Pure.

/** Equal lines: `length` of them, from `a` in the first text and from `b` in the second. */
export interface Match {
  a: number;
  b: number;
  length: number;
}

/** Most insertions and removals that are looked for; texts that differ by more are taken as different from there on. */
const MOST = 3000;

/** What two lists of lines have in common, in order, the longest there is (Myers, "An O(ND) Difference Algorithm"). */
export function matches(a: readonly string[], b: readonly string[]): Match[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1;
    endB -= 1;
  }
  const out: Match[] = [];
  const add = (x: number, y: number, length: number) => {
    const last = out.at(-1);
    if (length === 0) return;
    if (last && last.a + last.length === x && last.b + last.length === y) last.length += length;
    else out.push({ a: x, b: y, length });
  };
  add(0, 0, start);
  for (const { a: x, b: y, length } of middle(a, b, start, endA, endB)) add(x, y, length);
  add(endA, endB, a.length - endA);
  return out;
}

function middle(a: readonly string[], b: readonly string[], start: number, endA: number, endB: number): Match[] {
  const n = endA - start;
  const m = endB - start;
  if (n === 0 || m === 0) return [];
  const most = Math.min(n + m, MOST);
  const offset = most + 1;
  const reach = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let d = 0; d <= most; d += 1) {
    trace.push(reach.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && at(reach, offset + k - 1) < at(reach, offset + k + 1));
      let x = down ? at(reach, offset + k + 1) : at(reach, offset + k - 1) + 1;
      let y = x - k;
      while (x < n && y < m && a[start + x] === b[start + y]) {
        x += 1;
        y += 1;
      }
      reach[offset + k] = x;
      if (x >= n && y >= m) return walk(trace, d, n, m, start);
    }
  }
  return [];
}

function walk(trace: Int32Array[], d: number, n: number, m: number, start: number): Match[] {
  const out: Match[] = [];
  let x = n;
  let y = m;
  for (let depth = d; depth > 0; depth -= 1) {
    const reach = trace[depth] as Int32Array;
    // the row of `depth` begins at the diagonal -depth - 1
    const of = (k: number) => at(reach, k + depth + 1);
    const k = x - y;
    const down = k === -depth || (k !== depth && of(k - 1) < of(k + 1));
    const before = down ? k + 1 : k - 1;
    const beforeX = of(before);
    const beforeY = beforeX - before;
    const from = down ? beforeX : beforeX + 1;
    if (x > from) out.push({ a: start + from, b: start + from - k, length: x - from });
    x = beforeX;
    y = beforeY;
  }
  if (x > 0) out.push({ a: start, b: start, length: x });
  return out.reverse();
}

function at(list: Int32Array, index: number): number {
  return list[index] ?? 0;
}

/** A stretch of a merge: what was there before, and what each side made of it. */
export interface Hunk {
  /** `same`: nobody changed it; `mine`, `theirs`: one side did; `both`: both did, alike; `conflict`: differently. */
  kind: "same" | "mine" | "theirs" | "both" | "conflict";
  base: string[];
  mine: string[];
  theirs: string[];
}

/** What comes of two changes of one text, stretch by stretch; lines are compared as they are. */
export function merge3(base: readonly string[], mine: readonly string[], theirs: readonly string[]): Hunk[] {
  const toMine = counterpart(base.length, matches(base, mine));
  const toTheirs = counterpart(base.length, matches(base, theirs));
  const out: Hunk[] = [];
  const push = (hunk: Hunk) => {
    if (hunk.base.length + hunk.mine.length + hunk.theirs.length === 0) return;
    const last = out.at(-1);
    if (last && last.kind === hunk.kind && hunk.kind === "same") {
      last.base.push(...hunk.base);
      last.mine.push(...hunk.mine);
      last.theirs.push(...hunk.theirs);
    } else out.push(hunk);
  };
  let b = 0;
  let m = 0;
  let t = 0;
  const changed = (toBase: number, toM: number, toT: number) => {
    const hunk = { base: base.slice(b, toBase), mine: mine.slice(m, toM), theirs: theirs.slice(t, toT) };
    push({ kind: kind(hunk.base, hunk.mine, hunk.theirs), ...hunk });
  };
  for (let i = 0; i < base.length; i += 1) {
    const im = toMine[i];
    const it = toTheirs[i];
    if (im === undefined || it === undefined || im < 0 || it < 0) continue;
    changed(i, im, it);
    const line = [base[i] as string];
    push({ kind: "same", base: line, mine: [...line], theirs: [...line] });
    b = i + 1;
    m = im + 1;
    t = it + 1;
  }
  changed(base.length, mine.length, theirs.length);
  return out;
}

function counterpart(length: number, found: Match[]): number[] {
  const out = new Array<number>(length).fill(-1);
  for (const { a, b, length: many } of found) for (let i = 0; i < many; i += 1) out[a + i] = b + i;
  return out;
}

function kind(base: string[], mine: string[], theirs: string[]): Hunk["kind"] {
  const equal = (x: string[], y: string[]) => x.length === y.length && x.every((line, i) => line === y[i]);
  if (equal(mine, theirs)) return equal(mine, base) ? "same" : "both";
  if (equal(mine, base)) return "theirs";
  return equal(theirs, base) ? "mine" : "conflict";
}
