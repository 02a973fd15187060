// A fake /proc directory for the vitals tests.
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createTempDir } from '../../support/temp-dir.ts'

export type FakeProcess = {
  pid: number
  /** CPU time in ticks. */
  cpu?: number
  /** CPU time of reaped children, in ticks. */
  childrenCpu?: number
  anonKb?: number
  shmemKb?: number
  sockets?: number[]
  home?: string
  ppid?: number
  name?: string
  state?: string
  /** Ticks since boot. */
  start?: number
  uid?: number
  rssKb?: number
  /** NAME=value entries. */
  env?: string[]
  args?: string[]
  /** Bytes that were read and written. Default: not readable. */
  io?: [read: number, written: number]
  isKernelThread?: boolean
}

export function createFakeProc(t: Test) {
  const root = createTempDir(t, 'proc')
  mkdirSync(join(root, 'net'))
  const write = (name: string, text: string) => writeFileSync(join(root, name), text)
  write('net/tcp', 'header\n')
  write('net/sockstat', 'sockets: used 9\nTCP: inuse 0 orphan 0\n')
  let socketCount = 0
  write('meminfo', 'MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    750 kB\n')
  write('stat', 'cpu  0 0 0 0 0 0 0 0 0 0\n')

  return {
    root,
    write,
    /** Arguments: user nice system idle iowait irq softirq steal. */
    setCpu: (...ticks: number[]) =>
      write('stat', `cpu  ${ticks.join(' ')} 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\nintr 1\n`),
    /** name, received bytes, sent bytes */
    setInterfaces: (...interfaces: [string, number, number][]) =>
      write(
        'net/dev',
        [
          'Inter-|   Receive |  Transmit',
          ' face |bytes |bytes',
          ...interfaces.map(
            ([name, rx, tx]) => `${name.padStart(6)}: ${rx} 9 0 0 0 0 0 0 ${tx} 9 0 0 0 0 0 0`,
          ),
          '',
        ].join('\n'),
      ),
    /** Also changes the counts of sockets, unless `isCounted` is false. */
    setSockets: (file: 'tcp' | 'tcp6', sockets: FakeSocket[], { isCounted = true } = {}) => {
      write(
        `net/${file}`,
        ['  sl  local_address rem_address   st …', ...sockets.map(socketRow), ''].join('\n'),
      )
      if (isCounted) write('net/sockstat', `sockets: used 9\nTCP: inuse ${++socketCount} orphan 0\n`)
    },
    addProcess: ({
      pid,
      cpu = 0,
      childrenCpu = 0,
      anonKb = 0,
      shmemKb = 0,
      sockets = [],
      home,
      ppid = 1,
      name = 'a) b (c',
      state = 'S',
      start = 500,
      uid = 1000,
      rssKb = 999_999,
      env = home === undefined ? [] : ['A=b', `HOME=${home}`],
      args = [],
      io,
      isKernelThread = false,
    }: FakeProcess) => {
      rmSync(join(root, String(pid)), { recursive: true, force: true })
      mkdirSync(join(root, String(pid), 'fd'), { recursive: true })
      const ticks = `${cpu} 0 ${childrenCpu} 0`
      write(
        `${pid}/stat`,
        `${pid} (${name}) ${state} ${ppid} ${pid} ${pid} 0 -1 ${isKernelThread ? 2_129_984 : 4_194_560} 0 0 0 0 ${ticks} 20 0 1 0 ${start} 0 0\n`,
      )
      write(
        `${pid}/status`,
        [
          'Name:\ta',
          `Uid:\t${uid}\t0\t0\t0`,
          `VmRSS:\t ${rssKb} kB`,
          `RssAnon:\t ${anonKb} kB`,
          `RssShmem:\t ${shmemKb} kB`,
          '',
        ].join('\n'),
      )
      write(`${pid}/environ`, env.map((entry) => `${entry}\0`).join(''))
      write(`${pid}/cmdline`, args.map((arg) => `${arg}\0`).join(''))
      if (io !== undefined)
        write(
          `${pid}/io`,
          `rchar: 7\nread_bytes: ${io[0]}\nwrite_bytes: ${io[1]}\ncancelled_write_bytes: 7\n`,
        )
      symlinkSync('/dev/null', join(root, String(pid), 'fd', '0'))
      for (const [index, inode] of sockets.entries()) {
        symlinkSync(`socket:[${inode}]`, join(root, String(pid), 'fd', String(index + 3)))
      }
    },
    removeProcess: (pid: number) => rmSync(join(root, String(pid)), { recursive: true }),
  }
}

/** `state` is the hexadecimal TCP state. Default: LISTEN. `address` is in the notation of the table. Default: 127.0.0.1. */
export type FakeSocket = { inode: number; port: number; state?: string; address?: string; uid?: number }

const socketRow = ({ inode, port, state = '0A', address = '0100007F', uid = 1000 }: FakeSocket) =>
  `   0: ${address}:${port.toString(16).toUpperCase().padStart(4, '0')} ${'0'.repeat(address.length)}:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1 0 100 0`
