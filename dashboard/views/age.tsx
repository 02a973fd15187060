// How long ago something was, or in which time it is, with the exact time on hover. Only the text changes with the time, not the
// row around it.
import { useComputed } from '@preact/signals'
import { formatAge } from '../data/age.ts'
import { now } from '../data/live.ts'
import { formatLocalTime } from '../data/local-time.ts'

export function Age({ at }: { at: string }) {
  const text = useComputed(() => `${formatAge(now.value - Date.parse(at))} ago`)
  return (
    <time dateTime={at} title={formatLocalTime(Date.parse(at))}>
      {text}
    </time>
  )
}

/** Such as `in 13 d`, or `expired`. */
export function Expiry({ at }: { at: string }) {
  const ms = Date.parse(at)
  const text = useComputed(() => (ms > now.value ? `in ${formatAge(ms - now.value)}` : 'expired'))
  return (
    <time dateTime={at} title={formatLocalTime(ms)}>
      {text}
    </time>
  )
}
