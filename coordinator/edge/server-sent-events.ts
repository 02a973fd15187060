// Renders stream frames as server-sent events (spec §4.14). Pure.
import type { Offsets, StreamEncoding, StreamEvents } from '../../shared/api/processes.ts'
import { toTimestampOrNull } from '../../shared/clock.ts'
import { formatEventId } from '../../shared/event-id.ts'
import { isOutput, type StreamFrame } from '../../shared/stream-frames.ts'

/** @param position the reader's position after the event */
export const renderEvent = <N extends keyof StreamEvents>(
  name: N,
  position: Offsets,
  data: StreamEvents[N],
): string => `event: ${name}\nid: ${formatEventId(position)}\ndata: ${JSON.stringify(data)}\n\n`

export type RenderOptions = {
  encoding: StreamEncoding
  /** Whether output events have `at`. Default: false. */
  timestamps?: boolean
  /** Whether the attached event has `hasTimes`. Default: false. */
  hasTimes?: boolean
}

export function renderFrame(
  frame: StreamFrame,
  { encoding, timestamps = false, hasTimes = false }: RenderOptions,
): string {
  const position = positionOf(frame)
  if (isOutput(frame)) {
    const nextOffset = position[frame.event]
    const offset = nextOffset - frame.bytes.length
    return renderEvent(frame.event, position, {
      data: frame.bytes.toString(encoding),
      ...(timestamps && { at: toTimestampOrNull(frame.at ?? null) }),
      offset,
      nextOffset,
    })
  }
  const { event, stdoutOffset, stderrOffset } = frame
  switch (event) {
    case 'attached':
      return renderEvent(event, position, {
        processId: frame.processId,
        ...(hasTimes && { hasTimes: frame.hasTimes ?? false }),
        stdoutOffset,
        stderrOffset,
      })
    case 'heartbeat':
      return renderEvent(event, position, {})
    case 'reconnect':
      return renderEvent(event, position, { stdoutOffset, stderrOffset })
    case 'exit': {
      const { status, exitCode, signal, timedOut } = frame
      const exit = { status, exitCode, signal, timedOut }
      return renderEvent(event, position, { ...exit, stdoutOffset, stderrOffset })
    }
    case 'error':
      return renderEvent(event, position, { code: frame.code, message: frame.message })
  }
}

/** The reader's position after the frame. */
export const positionOf = ({ stdoutOffset, stderrOffset }: StreamFrame): Offsets => ({
  stdout: stdoutOffset,
  stderr: stderrOffset,
})
