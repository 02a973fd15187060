// A moment in the time zone of the browser.
import { formatLocalTime, formatZone } from '../data/local-time.ts'

export function LocalTime({ at }: { at: string }) {
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={formatZone(ms)}>
      {formatLocalTime(ms)}
    </time>
  )
}
