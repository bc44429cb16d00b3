// Preloaded (`node --import`): the wall clock of this process is off by the milliseconds in the file CLOCK_OFFSET_FILE,
// and steps when they change. Timers and `performance.now` are unaffected, as when a machine's clock is set.
import { readFileSync } from 'node:fs';

const LOOK_EVERY_MS = 50;
const file = process.env.CLOCK_OFFSET_FILE;
const RealDate = Date;
let offsetMs = 0;

function look() {
  const text = readFileSync(file, 'utf8');
  // An empty file is being written.
  if (text !== '') offsetMs = Number(text);
}

class SteppedDate extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(SteppedDate.now());
    else super(...given);
  }

  static now() {
    return RealDate.now() + offsetMs;
  }

  // Dates from C++, or from before this module, are dates too.
  static [Symbol.hasInstance](value) {
    return Object.prototype.toString.call(value) === '[object Date]';
  }
}

look();
setInterval(look, LOOK_EVERY_MS).unref();
globalThis.Date = SteppedDate;
