// The logic of the page of processes and ports.
import t from 'tap'
import {
  formatShareCommand,
  isWebUrl,
  listAudiences,
  listPortRows,
  parsePort,
} from '../../../dashboard/data/ports.ts'
import {
  arrangeTree,
  formatKill,
  getText,
  isSameProcess,
  sortProcesses,
} from '../../../dashboard/data/processes.ts'
import type { LiveProcess } from '../../../shared/api/live-processes.ts'
import type { PortShare } from '../../../shared/api/port-shares.ts'

const createProcess = (pid: number, fields: Partial<LiveProcess> = {}): LiveProcess => ({
  pid,
  ppid: 1,
  user: 'box',
  name: 'node',
  command: `node ${pid}.js`,
  state: 'S',
  threads: 1,
  cpuPct: 0,
  memBytes: 0,
  startedAt: '2026-01-01T00:00:00.000Z',
  processId: null,
  ...fields,
})

t.test('a process is below its parent, and a circle of parents is not endless', (t) => {
  const of = (pid: number, ppid: number) => createProcess(pid, { ppid })
  const shown = [of(9, 3), of(3, 1), of(1, 0), of(4, 3), of(7, 99), of(20, 21), of(21, 20), of(30, 30)]
  t.same(
    arrangeTree(shown).map(({ process, depth }) => [process.pid, depth]),
    [
      [1, 0],
      [3, 1],
      [4, 2],
      [9, 2],
      [7, 0],
      [30, 0],
      [20, 0],
      [21, 0],
    ],
  )
  t.same(arrangeTree([]), [])
  t.end()
})

t.test('processes are sorted, and those that are equal by pid', (t) => {
  const processes = [
    createProcess(30, { cpuPct: 5, command: 'b' }),
    createProcess(4, { memBytes: 10, command: '', name: 'a' }),
    createProcess(200, { cpuPct: 50 }),
  ]
  const pids = (sort: Parameters<typeof sortProcesses>[1]) =>
    sortProcesses(processes, sort).map(({ pid }) => pid)
  t.same(pids('cpu'), [200, 30, 4])
  t.same(pids('memory'), [4, 30, 200])
  t.same(pids('pid'), [4, 30, 200])
  t.same(pids('command'), [4, 30, 200])
  t.equal(getText({ command: '', name: 'a' }), 'a')
  t.end()
})

t.test('a process is killed only while it is the one that the page shows', (t) => {
  t.equal(formatKill(7, 'KILL'), 'kill -KILL 7')
  t.ok(isSameProcess(createProcess(7), createProcess(7, { cpuPct: 9 })))
  t.notOk(isSameProcess(createProcess(7), undefined))
  t.notOk(isSameProcess(createProcess(7), createProcess(7, { startedAt: '2026-01-01T00:00:01.000Z' })))
  t.end()
})

t.test('listening ports with their links', (t) => {
  const share = (port: number) => ({ id: `shr_${port}`, port }) as PortShare
  const listening = {
    at: '',
    ports: [
      { port: 8080, process: 'node', pid: 7 },
      { port: 22, process: null, pid: null },
      { port: 8080, process: 'node', pid: 8 },
    ],
  }
  const rows = listPortRows({ listening, shares: [share(8080), share(3000)] })
  t.same(
    rows.map(({ port, pid, isListening, share }) => [port, pid, isListening, share?.id ?? null]),
    [
      [22, null, true, null],
      [3000, null, false, 'shr_3000'],
      [8080, 7, true, 'shr_8080'],
      [8080, 8, true, 'shr_8080'],
    ],
  )
  t.same(listPortRows({ listening: null, shares: [] }), [])
  t.end()
})

t.test('who a link may be for, and the command that creates it', (t) => {
  const refusal = { allowed: false as const, error: 'not_allowed', message: 'only owners' }
  t.same(listAudiences({ members: { allowed: true }, anyone: { allowed: true }, public: refusal }), {
    allowed: ['members', 'anyone'],
    refusals: ['Everyone: only owners'],
  })
  t.equal(formatShareCommand('fig', '3000', 'members', '604800'), 'box share fig 3000')
  t.equal(formatShareCommand('fig', '3000', 'anyone', '3600'), 'box share fig 3000 --anyone --expires 1h')
  t.same(['1', ' 65535 ', '0', '65536', 'x', '', '1e3', '-1'].map(parsePort), [
    1,
    65_535,
    ...Array(6).fill(null),
  ])
  t.same(['https://a', 'http://a', 'javascript:alert(1)', ''].map(isWebUrl), [true, true, false, false])
  t.end()
})
