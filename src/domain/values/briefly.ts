/**
 * Loads at most once in `ttlMs`. Concurrent callers share the answer, also a load in flight. Failures are not cached; only the
 * waiting callers get them.
 */
export function briefly<T>(ttlMs: number, load: () => Promise<T>, now: () => number = () => performance.now()) {
  let kept: { atMs: number; answer: Promise<T> } | undefined;
  return (): Promise<T> => {
    if (kept && now() - kept.atMs < ttlMs) return kept.answer;
    const mine = { atMs: now(), answer: load() };
    kept = mine;
    mine.answer.catch(() => {
      if (kept === mine) kept = undefined;
    });
    return mine.answer;
  };
}
