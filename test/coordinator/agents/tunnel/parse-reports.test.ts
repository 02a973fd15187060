// Which lines of a report stream are stored, skipped, and refused.
import t from 'tap'
import {
  createLineParser,
  groupLines,
  InvalidReportError,
} from '../../../../coordinator/agents/tunnel/parse-reports.ts'

const line = (seq: number, report: unknown, epoch = 'e') =>
  JSON.stringify({ type: 'report', epoch, seq, report })
const started = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: '1' }

function createParser() {
  const logged: object[] = []
  const parseLine = createLineParser('box', { warn: (fields: object) => void logged.push(fields) })
  return { parseLine, logged }
}

t.test('skips and acknowledges unknown and invalid reports, and logs each type once', async (t) => {
  const { parseLine, logged } = createParser()
  const lines = [
    line(1, started),
    line(2, { type: 'of.a.newer.agent', data: [1] }),
    line(3, { type: 'of.a.newer.agent' }),
    line(4, { ...started, at: 'now' }),
    line(5, { ...started, field: 'of a newer agent' }),
    line(7, { type: 'of.another.agent' }),
    line(1, { type: 'of.a.newer.agent' }, 'e2'),
  ]
  t.same(groupLines(lines.map(parseLine)).batches, [
    {
      epoch: 'e',
      seq: 7,
      reports: [
        { seq: 1, report: started },
        { seq: 5, report: started },
      ],
    },
    { epoch: 'e2', seq: 1, reports: [] },
  ])
  t.match(logged, [
    { boxId: 'box', type: 'of.a.newer.agent' },
    { type: 'agent.started', problem: /at must be/ },
    { type: 'of.another.agent' },
  ])
})

t.test('refuses lines that are not reports', async (t) => {
  const { parseLine, logged } = createParser()
  const malformed = [
    'not JSON',
    '[]',
    '{"type":"unknown"}',
    line(-1, started),
    line(1.5, started),
    line(1, undefined),
    line(1, null),
    line(1, 'command.started'),
    line(1, [started]),
    line(1, {}),
    line(1, { ...started, type: 1 }),
    JSON.stringify({ type: 'report', seq: 1, report: started }),
    '['.repeat(100_000),
  ]
  const isRefused = (text: string) => {
    try {
      parseLine(text)
      return false
    } catch (error) {
      return error instanceof InvalidReportError
    }
  }
  t.same(
    malformed.filter((text) => !isRefused(text)),
    [],
  )
  t.same(logged, [])
})
