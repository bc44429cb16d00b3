/** The value at or below which a share of the samples lies; `share` 0..1. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Thousands with a separator, no decimals. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

/** Bytes as MiB. */
export function mib(bytes: number): string {
  return `${whole(bytes / 1_048_576)} MiB`;
}

/** A size from the environment. @throws RangeError when the variable is not a positive integer */
export function sizeOf(variable: string, fallback: number): number {
  const [size = fallback] = sizesOf(variable, [fallback]);
  return size;
}

/** Sizes from the environment, a comma list, smallest first. @throws RangeError as `sizeOf` */
export function sizesOf(variable: string, fallback: readonly number[]): number[] {
  const text = process.env[variable];
  const sizes = text === undefined ? [...fallback] : text.split(',').map(Number);
  if (sizes.some((size) => !Number.isInteger(size) || size < 1)) {
    throw new RangeError(`${variable} must hold positive integers, not ${JSON.stringify(text)}`);
  }
  return sizes.sort((a, b) => a - b);
}
