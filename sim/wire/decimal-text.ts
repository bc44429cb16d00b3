/** Decimal text from scaled integers: no binary float ever touches a price or a size on its way to the wire. */

/** `units / scale` (`scale` a power of ten times 1 or 2) without trailing zeros: `formatScaled(5, 1000)` is `0.005`. */
export function formatScaled(units: number, scale: number): string {
  const decimal = decimalScale(scale);
  const scaled = units * (decimal / scale);
  const sign = scaled < 0 ? '-' : '';
  const magnitude = Math.abs(scaled);
  const whole = Math.floor(magnitude / decimal);
  const digits = String(decimal).length - 1;
  const fraction = String(magnitude % decimal)
    .padStart(digits, '0')
    .replace(/0+$/, '');
  return fraction === '' ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}

/** The CLOB writes `last_trade_price` in a book with three decimals for every tick size: `0.430`. */
export function formatThreeDecimals(ticks: number, ticksPerUnit: number): string {
  const [whole = '0', fraction = ''] = formatScaled(ticks, ticksPerUnit).split('.');
  return `${whole}.${fraction.padEnd(3, '0')}`;
}

/** Parses plain decimal text into `units` of `1/scale`; undefined for text that is not a number on that grid. */
export function parseScaled(text: string, scale: number): number | undefined {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(text.trim());
  if (match === null) return undefined;
  const digits = String(scale).length - 1;
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  if (fraction.length > digits) return undefined;
  const units = Number(match[1]) * scale + Number(fraction.padEnd(digits, '0') || '0');
  return Number.isSafeInteger(units) ? units : undefined;
}

function decimalScale(scale: number): number {
  let decimal = 1;
  while (decimal % scale !== 0) decimal *= 10;
  return decimal;
}
