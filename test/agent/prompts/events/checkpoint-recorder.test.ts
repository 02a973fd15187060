// Positions from which readers can start: how many, how far apart, and in which file.
import t, { type Test } from 'tap'
import { CheckpointRecorder } from '../../../../agent/prompts/events/checkpoint-recorder.ts'
import { readCheckpoints, readPosition } from '../../../../agent/prompts/events/checkpoints.ts'
import { LOG_START, type LogPosition } from '../../../../agent/prompts/events/event-decoder.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'

const CHECKPOINT_BYTES = 64 * 1024

const at = (offset: number, notice: string | null = null): LogPosition => ({
  ...LOG_START,
  offset,
  seq: offset,
  notice,
})

function createRecorder(t: Test) {
  const runDir = createTempDir(t, 'recorder')
  let head = 0
  const recorder = new CheckpointRecorder({
    runDir,
    output: { read: async () => ({ offset: head, bytes: Buffer.from('x') }) },
    times: { find: (offset) => (offset === 0 ? null : offset * 10) },
    checkpoints: [],
    startAt: 7,
    checkpointBytes: CHECKPOINT_BYTES,
    log: silentLog,
  })
  return {
    recorder,
    runDir,
    record: (position: LogPosition) => recorder.record(position, position.offset + 1),
    discardUntil: (offset: number) => {
      head = offset
    },
    offsets: () => recorder.getStarts().map(({ offset }) => offset),
  }
}

t.test('few positions are stored, and more recent ones are in memory', async (t) => {
  const { recorder, record, runDir, offsets } = createRecorder(t)
  for (let offset = 0; offset <= 2 * CHECKPOINT_BYTES; offset += 1024) record(at(offset))
  await recorder.save(at(2 * CHECKPOINT_BYTES))
  t.match(readCheckpoints(runDir), [{ offset: CHECKPOINT_BYTES }, { offset: 2 * CHECKPOINT_BYTES }])
  t.match(readPosition(runDir), { offset: 2 * CHECKPOINT_BYTES, at: 20 * CHECKPOINT_BYTES })
  const starts = offsets()
  t.same(
    starts,
    [...starts].sort((a, b) => a - b),
  )
  t.equal(starts.at(-1), 2 * CHECKPOINT_BYTES)
  t.equal(starts.length, 32, 'one position for each 4 KiB')
})

t.test('a notice is stored at any distance, because it is an event without output', async (t) => {
  const { recorder, record, runDir } = createRecorder(t)
  record(at(10, 'A line was omitted.'))
  await recorder.save(null)
  t.match(readCheckpoints(runDir), [{ offset: 10, notice: 'A line was omitted.' }])
  t.equal(readPosition(runDir), undefined, 'an inexact position is not stored')
})

t.test('checkpoints of discarded output are removed', async (t) => {
  const { recorder, record, runDir, discardUntil } = createRecorder(t)
  for (let index = 1; index <= 200; index += 1) record(at(index * CHECKPOINT_BYTES))
  discardUntil(150 * CHECKPOINT_BYTES)
  await recorder.save(at(200 * CHECKPOINT_BYTES))
  t.equal(readCheckpoints(runDir).at(0)?.offset, 150 * CHECKPOINT_BYTES)
  t.equal(readCheckpoints(runDir).length, 51)
})
