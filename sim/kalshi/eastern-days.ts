const HOUR = 3600;
const DAY = 86_400;

const easternHour = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/New_York',
  hour: 'numeric',
  hourCycle: 'h23',
});

/** The first midnight of New York at or after a second, epoch seconds: 4:00 or 5:00 UTC, depending on daylight saving. */
export function easternMidnightFrom(second: number): number {
  for (let day = Math.floor(second / DAY) * DAY; ; day += DAY) {
    const midnight = [4, 5].map((hour) => day + hour * HOUR).find((at) => easternHour.format(at * 1000) === '00');
    if (midnight !== undefined && midnight >= second) return midnight;
  }
}
