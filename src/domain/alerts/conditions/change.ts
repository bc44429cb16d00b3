import {
  compareDecimals,
  type Decimal,
  HUNDRED,
  multiplyDecimals,
  subtractDecimals,
  ZERO,
} from '../../values/decimal.ts';
import { span } from '../../values/durations.ts';
import { joined, moveField, numberOf, observed, priceOf, textOf, windowOf, word } from '../../webhooks/chat-values.ts';
import {
  ANY_THRESHOLD,
  type Evaluation,
  type Measure,
  type Observed,
  type OutcomeCondition,
  type Terms,
  upTo,
  windowClass,
} from '../condition.ts';
import { PriceWindow, type Standing } from '../windows.ts';

/** More than the relative error of a few operations on doubles. */
const ERROR_OF_NUMBERS = 1e-12;

/** The price moves by a difference or a percentage within a window. */
export const change: OutcomeCondition = {
  of: 'outcome',
  label: 'Price: moves within a window',
  required: ['change', 'unit', 'windowSeconds'],
  optional: ['direction'],
  direction: {
    label: 'Direction',
    options: [
      ['', 'up or down'],
      ['up', 'up'],
      ['down', 'down'],
    ],
  },
  threshold: () => 'change',
  isState: false,
  probe: ({ unit, windowSeconds }) => `change_${unit}:${windowClass(windowSeconds)}`,
  probes: {
    change_absolute: {
      range: (_, window) => (window && window.high > window.low ? upTo(window.high - window.low) : null),
    },
    change_percent: {
      range(_, window) {
        if (!window || window.high <= window.low) return null;
        return upTo(window.low > 0 ? ((window.high - window.low) * 100) / window.low : ANY_THRESHOLD);
      },
    },
  },
  lookbackMs: ({ windowMs = 0 }) => windowMs,
  needs: () => ({ of: 'price' }),
  evaluation: (terms) => new ChangeEvaluation(terms),
  sentence({ change: size, unit, direction, windowSeconds }, words) {
    const by = unit === 'percent' ? `${words.number(size)} %` : words.difference(size);
    const within = windowSeconds === undefined ? '' : ` within ${span(windowSeconds)}`;
    return `${words.subject} moves ${direction === undefined ? '' : `${direction} `}by ${by}${within}`;
  },
  line(data) {
    const [before, price] = [word(data['fromPrice']), word(data['currentPrice'])];
    const unit = data['unit'] === 'percent' ? '%' : '';
    return observed(joined('change', word(data['change']), unit), before === '' ? price : `${before} to ${price}`);
  },
  chat({ subject, data }) {
    const size = joined(numberOf(data['change']), data['unit'] === 'percent' ? '%' : undefined);
    const within = windowOf(data);
    const verb = data['direction'] === 'up' ? 'rose' : data['direction'] === 'down' ? 'fell' : 'moved';
    return {
      title: joined('Price alert:', subject, verb, 'by at least', size, within),
      fields: [
        priceOf(data),
        moveField(data),
        ['Threshold', joined('at least', size, textOf(data['direction']), within)],
      ],
    };
  },
};

class ChangeEvaluation implements Evaluation {
  readonly #terms: Terms;
  readonly #prices: PriceWindow;
  /** The threshold as a number. */
  readonly #approximate: number;

  constructor(terms: Terms) {
    this.#terms = terms;
    this.#prices = new PriceWindow(terms.windowMs ?? 0);
    this.#approximate = Number(terms.threshold);
  }

  enter({ atMs }: Observed): void {
    this.#prices.advance(atMs);
  }

  measure({ price }: Observed): Measure | undefined {
    const { direction } = this.#terms;
    const { least, greatest } = this.#prices;
    const now = Number(price);
    if (direction !== 'down' && least !== undefined && this.#isMove(price, now, least, 1)) {
      return { fromPrice: least.price };
    }
    if (direction !== 'up' && greatest !== undefined && this.#isMove(price, now, greatest, -1)) {
      return { fromPrice: greatest.price };
    }
    return undefined;
  }

  /** A percentage of a price of zero is undefined, so it is no reference. */
  leave({ price }: Observed, isFiring: boolean): void {
    if (isFiring) this.#prices.clear();
    this.#prices.push(this.#terms.unit === 'percent' && price === ZERO ? null : price);
  }

  /** Decides by numbers, unless they are so near the threshold that their error matters. */
  #isMove(price: Decimal, now: number, start: Standing, sign: 1 | -1): boolean {
    const { threshold, unit } = this.#terms;
    const isPercent = unit === 'percent';
    const needed = isPercent ? (this.#approximate * start.approximate) / 100 : this.#approximate;
    const excess = sign * (now - start.approximate) - needed;
    if (excess < -ERROR_OF_NUMBERS * (now + start.approximate + needed)) return false;
    const move = sign === 1 ? subtractDecimals(price, start.price) : subtractDecimals(start.price, price);
    if (!isPercent) return compareDecimals(move, threshold) >= 0;
    return compareDecimals(multiplyDecimals(move, HUNDRED), multiplyDecimals(threshold, start.price)) >= 0;
  }
}
