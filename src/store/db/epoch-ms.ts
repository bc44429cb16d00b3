/** SQL of a moment in whole epoch milliseconds, as a number like that of a Date. */
export function epochMs(moment: string): string {
  return `floor(extract(epoch FROM ${moment}) * 1000)::float8`;
}
