/** Writes to stdout; resolves after the flush, which must precede the exit. @throws EPIPE when the reader ended */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
