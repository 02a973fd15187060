// Converts between instants and the local dates and times of a time zone, with its changes for daylight saving time.

/** A date without a time zone: midnight UTC of the day, in milliseconds since the epoch. */
export type LocalDate = number

export type LocalTimes = {
  getDate(instant: number): LocalDate
  /**
   * The instant of a local time. A time that is skipped by a change of the offset is the instant of the change; one that is
   * repeated is the first of both instants.
   * @param minutes since midnight
   */
  toInstant(date: LocalDate, minutes: number): number
}

const MINUTE_MS = 60_000
export const DAY_MS = 24 * 60 * MINUTE_MS

/** @param timezone IANA name, such as Europe/Berlin */
export function createLocalTimes(timezone: string): LocalTimes {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })

  /** The local time minus UTC, in milliseconds. */
  function getOffset(instant: number): number {
    const seconds = Math.floor(instant / 1000) * 1000
    const parts = new Map(format.formatToParts(seconds).map(({ type, value }) => [type, Number(value)]))
    const read = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0
    const local = Date.UTC(
      read('year'),
      read('month') - 1,
      read('day'),
      read('hour'),
      read('minute'),
      read('second'),
    )
    return local - seconds
  }

  /** The first instant with the later offset. Offsets change at full minutes. */
  function findChange(from: number, to: number, offset: number): number {
    let [before, after] = [from, to]
    while (after - before > MINUTE_MS) {
      const middle = before + Math.floor((after - before) / 2 / MINUTE_MS) * MINUTE_MS
      if (getOffset(middle) === offset) after = middle
      else before = middle
    }
    return after
  }

  return {
    getDate(instant) {
      const local = instant + getOffset(instant)
      return local - (local % DAY_MS)
    },
    toInstant(date, minutes) {
      const local = date + minutes * MINUTE_MS
      // No time zone changes its offset twice within two days.
      const offsets = [getOffset(local - DAY_MS), getOffset(local + DAY_MS)] as const
      const [earlier, later] = offsets
      const candidates = offsets.map((offset) => local - offset).sort((a, b) => a - b)
      const instant = candidates.find((candidate) => candidate + getOffset(candidate) === local)
      return instant ?? findChange(local - later, local - earlier, later)
    },
  }
}
