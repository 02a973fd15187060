// Which listening sockets get a connection to a port, and whether they belong to the box.
import { endianness } from 'node:os'
import { setImmediate as immediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createBoxListeners } from '../../../agent/ports/box-listeners.ts'
import { createBoxProcesses } from '../../../agent/vitals/box-processes.ts'
import { createFakeProc } from '../vitals/fake-proc.ts'

const PORT = 3000
const OWN = ['BOXWOOD_BOX=own']

/** The tables have the byte order of the machine. */
const address = (littleEndian: string) =>
  endianness() === 'LE' ? littleEndian : littleEndian.replaceAll(/(..)(..)(..)(..)/g, '$4$3$2$1')
const LOOPBACK4 = address('0100007F')
const OTHER4 = address('0200007F')
const ANY4 = address('00000000')
const LOOPBACK6 = address('00000000000000000000000001000000')
const ANY6 = address('00000000000000000000000000000000')
const MAPPED_LOOPBACK = address('0000000000000000FFFF00000100007F')

/** Process 5 belongs to the box and has the sockets from 10 on, process 6 belongs to another box and has those from 20 on. */
function setUp(t: Test) {
  const proc = createFakeProc(t)
  proc.addProcess({ pid: 5, env: OWN, sockets: [10, 11, 12] })
  proc.addProcess({ pid: 6, env: ['BOXWOOD_BOX=other'], sockets: [20, 21, 22] })
  const processes = createBoxProcesses({ procRoot: proc.root, membership: { boxId: 'own', ownUid: null } })
  let lists = 0
  let now = 0
  const listeners = createBoxListeners({
    procRoot: proc.root,
    processes: {
      list() {
        lists += 1
        return processes.list()
      },
    },
    monotonicNow: () => now,
  })
  return {
    proc,
    find: listeners.find,
    lists: () => lists,
    advance: (ms: number) => {
      now += ms
    },
    async findBoth() {
      return [await listeners.find('127.0.0.1', PORT), await listeners.find('::1', PORT)]
    },
  }
}

type Row = [table: 'tcp' | 'tcp6', inode: number, address: string, uid?: number]
type Case = { rows: Row[]; v4?: string[]; v6?: string[] }

const CASES: Record<string, Case> = {
  'nothing listens': { rows: [] },
  'a socket of the box on 127.0.0.1': { rows: [['tcp', 10, LOOPBACK4]], v4: ['10'] },
  'a socket of the box on all IPv4 addresses': { rows: [['tcp', 10, ANY4]], v4: ['10'] },
  'a socket of the box on all addresses': { rows: [['tcp6', 10, ANY6]], v4: ['10'], v6: ['10'] },
  'a socket of the box on ::1 only': { rows: [['tcp6', 10, LOOPBACK6]], v6: ['10'] },
  'an IPv6 socket of the box on 127.0.0.1': { rows: [['tcp6', 10, MAPPED_LOOPBACK]], v4: ['10'] },
  'a socket of the box on another address': { rows: [['tcp', 10, OTHER4]] },
  'a socket of another box': { rows: [['tcp', 20, ANY4]] },
  'a more specific socket of another box': {
    rows: [
      ['tcp', 10, ANY4],
      ['tcp', 20, LOOPBACK4],
    ],
  },
  'a more specific IPv6 socket of another box': {
    rows: [
      ['tcp6', 10, ANY6],
      ['tcp6', 20, LOOPBACK6],
      ['tcp6', 21, MAPPED_LOOPBACK],
    ],
  },
  'a less specific socket of another box': {
    rows: [
      ['tcp', 10, LOOPBACK4],
      ['tcp', 20, ANY4],
    ],
    v4: ['10'],
  },
  'SO_REUSEPORT within the box': {
    rows: [
      ['tcp', 11, ANY4],
      ['tcp', 10, ANY4],
    ],
    v4: ['10', '11'],
  },
  'SO_REUSEPORT with another box': {
    rows: [
      ['tcp', 10, ANY4],
      ['tcp', 20, ANY4],
    ],
  },
  'SO_REUSEPORT of IPv4 with IPv6 of another box that has the same user': {
    rows: [
      ['tcp', 10, ANY4],
      ['tcp6', 20, ANY6],
    ],
  },
  'IPV6_V6ONLY of another box, whose user is another one': {
    rows: [
      ['tcp', 10, ANY4, 1000],
      ['tcp6', 20, ANY6, 1001],
    ],
    v4: ['10'],
  },
  'IPV6_V6ONLY of the box beside IPv4 of another box': {
    rows: [
      ['tcp', 20, ANY4, 1001],
      ['tcp6', 10, ANY6, 1000],
    ],
    v6: ['10'],
  },
}

for (const [name, { rows, v4, v6 }] of Object.entries(CASES))
  t.test(name, async (t) => {
    const { proc, findBoth } = setUp(t)
    for (const table of ['tcp', 'tcp6'] as const)
      proc.setSockets(
        table,
        rows
          .filter((row) => row[0] === table)
          .flatMap(([, inode, address, uid = 1000]) => [{ inode, address, uid, port: PORT }])
          // Other ports do not matter.
          .concat({ inode: table === 'tcp' ? 22 : 12, address: ANY4, uid: 1, port: PORT + 1 }),
      )
    t.strictSame(await findBoth(), [v4, v6])
  })

t.test('reads only the listening sockets, which are at the start of a table', async (t) => {
  const { proc, find } = setUp(t)
  const connections = Array.from({ length: 5000 }, (_, index) => ({
    inode: 9000 + index,
    port: 80,
    state: '01',
  }))
  proc.setSockets('tcp', [
    ...Array.from({ length: 1000 }, (_, index) => ({ inode: 1000 + index, port: 10_000 + index })),
    { inode: 10, port: PORT },
    ...connections,
    // The kernel never lists this one: it shows that the rest is not read.
    { inode: 20, port: PORT },
  ])
  t.strictSame(await find('127.0.0.1', PORT), ['10'])
})

t.test('searches for the owner of a socket once, while the owner runs', async (t) => {
  const { proc, find, lists } = setUp(t)
  proc.setSockets('tcp', [{ inode: 10, port: PORT }])
  for (let count = 0; count < 3; count++) t.strictSame(await find('127.0.0.1', PORT), ['10'])
  t.equal(lists(), 1)
  // Another box has a process with the pid of the owner, and the socket.
  proc.addProcess({ pid: 5, env: ['BOXWOOD_BOX=other'], start: 900, sockets: [10] })
  t.equal(await find('127.0.0.1', PORT), undefined)
})

t.test('a socket whose owner is not found is searched for again after a second', async (t) => {
  const { proc, find, lists, advance } = setUp(t)
  proc.setSockets('tcp', [{ inode: 13, port: PORT }])
  t.equal(await find('127.0.0.1', PORT), undefined)
  t.equal(lists(), 2)
  t.equal(await find('127.0.0.1', PORT), undefined)
  t.equal(lists(), 2, 'no search')
  proc.addProcess({ pid: 7, env: OWN, sockets: [13] })
  advance(1000)
  t.strictSame(await find('127.0.0.1', PORT), ['13'])
})

t.test('concurrent calls share a read of the tables that starts after them', async (t) => {
  const { proc, find } = setUp(t)
  const running = find('127.0.0.1', PORT)
  await immediate()
  proc.setSockets('tcp', [{ inode: 10, port: PORT }])
  const later = Promise.all([find('127.0.0.1', PORT), find('127.0.0.1', PORT)])
  await running
  t.strictSame(await later, [['10'], ['10']])
})
