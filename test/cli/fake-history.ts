// The command history of a fake coordinator: records in memory, output in pages.
import { type Command, type CommandOutput, commandSchema } from '../../shared/api/commands.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, sendJson } from './fake-coordinator.ts'

export type FakeRecord = Command & {
  output: Buffer
  /** The offset of the first byte that is not discarded. */
  firstStoredByte: number
}

export type FakeHistory = {
  records: FakeRecord[]
  add(fields: Partial<FakeRecord>): FakeRecord
}

/** Bytes of a page, whatever limit was requested. */
const PAGE_BYTES = 1000

/** All boxes share the records that name no box. The stderr of a command is its stdout reversed. */
export function addFakeHistory(fake: FakeCoordinator): FakeHistory {
  const records: FakeRecord[] = []
  const findRecord = (id: string): FakeRecord => {
    const record = records.find((record) => record.id === id)
    if (record === undefined) throw new ApiError('not_found')
    return record
  }
  fake.addRoutes([
    [
      /^GET \/api\/v1\/boxes\/([^/]+)\/commands(?:\?(.*))?$/,
      async (_, response, [, boxId = '', query]) => {
        const { limit = '50', before, mode, status } = Object.fromEntries(new URLSearchParams(query))
        const matches = records.filter(
          (record) =>
            [boxId, NEW_RECORD.boxId].includes(record.boxId) &&
            (!mode || record.mode === mode) &&
            (!status || record.status === status),
        )
        const start = before === undefined ? 0 : matches.findIndex(({ id }) => id === before) + 1
        const commands = matches.slice(start, start + Number(limit))
        const isLast = start + commands.length === matches.length
        sendJson(response, { commands, nextBefore: isLast ? null : (commands.at(-1)?.id ?? null) })
      },
    ],
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/commands\/([^/]+)$/,
      async (_, response, [, id = '']) => sendJson(response, { command: findRecord(id) }),
    ],
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/commands\/([^/]+)\/output\?(.*)$/,
      async (_, response, [, id = '', query]) =>
        sendJson(response, getPage(findRecord(id), new URLSearchParams(query))),
    ],
    [
      /^DELETE \/api\/v1\/boxes\/[^/]+\/commands\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        records.splice(records.indexOf(findRecord(id)), 1)
        response.writeHead(204).end()
      },
    ],
    [
      /^DELETE \/api\/v1\/boxes\/[^/]+\/commands$/,
      async (_, response) => sendJson(response, { deleted: records.splice(0).length }),
    ],
  ])
  return {
    records,
    add(fields) {
      const id = `p_${String(records.length).padStart(24, '0')}`
      const record = { ...NEW_RECORD, id, ...fields }
      const { output, firstStoredByte } = record
      records.unshift({ ...commandSchema.parse(record), output, firstStoredByte })
      return record
    },
  }
}

function getPage({ output, firstStoredByte, status }: FakeRecord, query: URLSearchParams): CommandOutput {
  const requestedOffset = Number(query.get('offset'))
  const stream = query.get('stream') === 'stderr' ? 'stderr' : 'stdout'
  const bytes = stream === 'stderr' ? Buffer.from(output).reverse() : output
  const offset = Math.max(requestedOffset, firstStoredByte)
  const data = bytes.subarray(offset, offset + PAGE_BYTES)
  const nextOffset = offset + data.length
  return {
    stream,
    encoding: 'base64',
    offset,
    nextOffset,
    size: bytes.length,
    skipped: offset - requestedOffset,
    data: data.toString('base64'),
    status,
    done: status !== 'running' && nextOffset === bytes.length,
  }
}

const NEW_RECORD: FakeRecord = {
  id: '',
  boxId: '00000000-0000-4000-8000-000000000000',
  mode: 'sync',
  source: 'cli',
  command: 'true',
  commandTruncated: false,
  cwd: '~',
  status: 'exited',
  exitCode: 0,
  signal: null,
  pid: 7,
  startedAt: '2030-01-01T00:00:00.000Z',
  finishedAt: '2030-01-01T00:01:05.000Z',
  actor: { kind: 'user', userId: 'usr_1', tokenId: 'key_1' },
  stdoutBytes: 0,
  stderrBytes: 0,
  stdoutTruncated: false,
  stderrTruncated: false,
  outputKept: true,
  output: Buffer.alloc(0),
  firstStoredByte: 0,
}
