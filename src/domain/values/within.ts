/**
 * The result of `work`, or of `onLate` when `work` takes longer than `limitMs`. Late work continues, and its result is ignored.
 */
export async function within<T, L>(limitMs: number, work: Promise<T>, onLate: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  try {
    return await Promise.race([work, expiry.then(onLate)]);
  } finally {
    clearTimeout(timer);
  }
}
