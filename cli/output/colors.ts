// Colours of results and messages. None when the stream is not a terminal, with NO_COLOR, or with TERM=dumb.
import { styleText } from 'node:util'

export type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'gray' | 'bold' | 'dim'

/** `text` in a colour, if `stream` shows colours. FORCE_COLOR overrides NO_COLOR, as in Node. */
export function colorize(
  text: string,
  color: Color | null,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return color === null ? text : styleText(color, text, { stream })
}

const STATE_COLORS: Record<string, Color> = {
  running: 'green',
  provision_failed: 'red',
  failed: 'red',
  killed: 'red',
  timed_out: 'red',
  lost: 'red',
  degraded: 'red',
  available: 'green',
  suspended: 'gray',
  deep_sleep: 'gray',
  terminated: 'gray',
  interrupted: 'gray',
}

/** The colour of the observed state of a box or of the status of a command. Null: the default colour; yellow: changing. */
export function getStateColor(state: string): Color | null {
  if (state === 'exited' || state === 'done') return null
  return STATE_COLORS[state] ?? 'yellow'
}
