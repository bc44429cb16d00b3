/**
 * Asks once in `ttlMs`, whoever looks: those who come meanwhile share the answer, also the one under way. A failure is kept
 * for nobody but those who wait for it.
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
