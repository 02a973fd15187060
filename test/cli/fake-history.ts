// The command history of the boxes of a fake coordinator: records in memory, output in pages.
import { type Command, type CommandOutput, command as commandSchema } from '../../shared/api/commands.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, json } from './fake-coordinator.ts'

export type FakeRecord = Command & {
  output: Buffer
  /** The first byte that is still kept. */
  kept: number
}

export type FakeHistory = {
  records: FakeRecord[]
  add(fields: Partial<FakeRecord>): FakeRecord
}

/** Bytes of a page, however many were asked for. */
const PAGE = 1000

/** One box's records are every box's; stderr is stdout backwards. */
export function fakeHistory(fake: FakeCoordinator): FakeHistory {
  const records: FakeRecord[] = []
  const find = (id: string): FakeRecord => {
    const found = records.find((record) => record.id === id)
    if (found === undefined) throw new ApiError('not_found')
    return found
  }
  fake.serve([
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/commands(?:\?(.*))?$/,
      async (_, response, [, query]) => {
        const { limit = '50', before, mode, status } = Object.fromEntries(new URLSearchParams(query))
        const all = records.filter(
          (record) => (!mode || record.mode === mode) && (!status || record.status === status),
        )
        const from = before === undefined ? 0 : all.findIndex(({ id }) => id === before) + 1
        const commands = all.slice(from, from + Number(limit))
        const isLast = from + commands.length === all.length
        json(response, { commands, nextBefore: isLast ? null : (commands.at(-1)?.id ?? null) })
      },
    ],
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/commands\/([^/]+)$/,
      async (_, response, [, id = '']) => json(response, { command: find(id) }),
    ],
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/commands\/([^/]+)\/output\?(.*)$/,
      async (_, response, [, id = '', query]) => json(response, pageOf(find(id), new URLSearchParams(query))),
    ],
    [
      /^DELETE \/api\/v1\/boxes\/[^/]+\/commands\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        records.splice(records.indexOf(find(id)), 1)
        response.writeHead(204).end()
      },
    ],
    [
      /^DELETE \/api\/v1\/boxes\/[^/]+\/commands$/,
      async (_, response) => json(response, { deleted: records.splice(0).length }),
    ],
  ])
  return {
    records,
    add(fields) {
      const id = `p_${String(records.length).padStart(24, '0')}`
      const record = { ...NEW, id, ...fields }
      records.unshift({ ...commandSchema.parse(record), output: record.output, kept: record.kept })
      return record
    },
  }
}

function pageOf({ output, kept, status }: FakeRecord, query: URLSearchParams): CommandOutput {
  const asked = Number(query.get('offset'))
  const bytes = query.get('stream') === 'stderr' ? Buffer.from(output).reverse() : output
  const offset = Math.max(asked, kept)
  const data = bytes.subarray(offset, offset + PAGE)
  const nextOffset = offset + data.length
  return {
    stream: query.get('stream') === 'stderr' ? 'stderr' : 'stdout',
    encoding: 'base64',
    offset,
    nextOffset,
    size: bytes.length,
    skipped: offset - asked,
    data: data.toString('base64'),
    status,
    done: status !== 'running' && nextOffset === bytes.length,
  }
}

const NEW: FakeRecord = {
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
  kept: 0,
}
