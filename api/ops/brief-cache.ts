/**
 * Asks at most once in `ttlMs`: concurrent callers share the answer, also one in flight. A failure is not cached: only the
 * callers that wait for it see it.
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
