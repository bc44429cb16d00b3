/** The same wait is reported again after this time. */
const REPEAT_MS = 10_000;

/** Reports the reason of a wait: when it changes, and from time to time while it stays the same. `nowMs` counts from the start. */
export function startProgress(say: (text: string) => void, nowMs: () => number) {
  let shown: string | undefined;
  let shownMs = 0;
  return {
    /** `detail` is shown only when the wait is long, because a refused connection is normal during a start. */
    waitingFor(subject: string, detail?: string): void {
      const now = nowMs();
      if (subject === shown && now - shownMs < REPEAT_MS) return;
      const isLong = subject === shown && detail !== undefined;
      const seconds = Math.round(now / 1000);
      say(`waiting for ${subject} (${seconds} s)${isLong ? `: ${detail}` : ''}`);
      shown = subject;
      shownMs = now;
    },
  };
}
