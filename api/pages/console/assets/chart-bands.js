// Hatched times of a chart, in which the history is not complete.
import { colors } from './price-chart.js';

const STEP = 8;
/** The least width of a band, pixels: a gap of a minute is visible in a chart of a month. */
const LEAST_WIDTH = 3;
/** The height of the strip of hours that are not judged yet, pixels. */
const STRIP = 5;

/** Draws bands below a series. `placeOf` returns the place of a time on the axis, and `isShown` whether the axis has a part of it. */
export class Bands {
  #bands = [];
  #placeOf;
  #isShown;
  #param;
  constructor(placeOf, isShown) {
    this.#placeOf = placeOf;
    this.#isShown = isShown;
  }
  attached(param) {
    this.#param = param;
  }
  set(bands) {
    this.#bands = bands;
    this.#param?.requestUpdate();
  }
  paneViews() {
    return [{ zOrder: () => 'bottom', renderer: () => ({ draw: (target) => this.#draw(target) }) }];
  }
  #draw(target) {
    if (this.#bands.length === 0) return;
    const scale = this.#param.chart.timeScale();
    const color = colors();
    // The library knows the places of whole points only.
    const zero = scale.logicalToCoordinate(0);
    const step = scale.logicalToCoordinate(1) - zero;
    target.useMediaCoordinateSpace(({ context, mediaSize: { width, height } }) => {
      for (const { from, to, kind } of this.#bands) {
        if (!this.#isShown(from, to)) continue;
        const [left, right] = [from, to].map((time) => zero + step * this.#placeOf(time));
        const start = Math.max(0, left);
        const end = Math.min(width, Math.max(right, left + LEAST_WIDTH));
        if (end <= start) continue;
        context.save();
        context.beginPath();
        if (kind === 'pending') context.rect(start, height - STRIP, end - start, STRIP);
        else context.rect(start, 0, end - start, height);
        context.clip();
        const isGap = kind === 'gap';
        context.strokeStyle = isGap ? color.warn : color.soft;
        context.globalAlpha = isGap ? 0.7 : kind === 'pending' ? 0.6 : 0.18;
        context.lineWidth = isGap ? 1.5 : 1;
        context.beginPath();
        // The lines of all bands lie on one pattern. The lines of a gap rise, the others fall.
        const apart = isGap ? STEP : STEP + 2;
        for (let at = Math.floor((start - height) / apart) * apart; at < end; at += apart) {
          context.moveTo(at, isGap ? height : 0);
          context.lineTo(at + height, isGap ? 0 : height);
        }
        context.stroke();
        context.restore();
      }
    });
  }
}
