// How long ago something was. Only the text changes with the time, not the row around it.
import { useComputed } from '@preact/signals'
import { formatAge } from '../data/age.ts'
import { now } from '../data/live.ts'

export function Age({ at }: { at: string }) {
  const text = useComputed(() => `${formatAge(now.value - Date.parse(at))} ago`)
  return <time dateTime={at}>{text}</time>
}
