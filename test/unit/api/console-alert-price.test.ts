import { expect, it } from 'vitest';

// The scripts of pages have no types.
const script = new URL('../../../api/pages/console/assets/live.js', import.meta.url).href;
const { alertPrice } = (await import(script)) as { alertPrice: (price: number) => string };

it.each([
  [0.0001, '0.001'],
  [0.0004, '0.001'],
  [0.5, '0.5'],
  [0.6204, '0.62'],
  [0.999, '0.999'],
  [0.9999, '0.999'],
])('a click on the chart at %d sets the price %s', (at, price) => expect(alertPrice(at)).toBe(price));
