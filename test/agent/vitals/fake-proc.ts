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
}

export function createFakeProc(t: Test) {
  const root = createTempDir(t, 'proc')
  mkdirSync(join(root, 'net'))
  const write = (name: string, text: string) => writeFileSync(join(root, name), text)
  write('net/tcp', 'header\n')
  write('uptime', '1000.00 2000.00\n')
  write('meminfo', 'MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    750 kB\n')
  write('stat', 'cpu  0 0 0 0 0 0 0 0 0 0\n')

  return {
    root,
    write,
    /** Arguments: user nice system idle iowait irq softirq steal. */
    setCpu: (...ticks: number[]) =>
      write('stat', `cpu  ${ticks.join(' ')} 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\nintr 1\n`),
    setUptime: (seconds: number) => write('uptime', `${seconds.toFixed(2)} 1.00\n`),
    /** `state` is the hexadecimal TCP state. Default: LISTEN. */
    setSockets: (file: 'tcp' | 'tcp6', inodes: number[], state = '0A') =>
      write(
        `net/${file}`,
        [
          '  sl  local_address rem_address   st …',
          ...inodes.map((inode) => socketRow(inode, state)),
          '',
        ].join('\n'),
      ),
    addProcess: ({
      pid,
      cpu = 0,
      childrenCpu = 0,
      anonKb = 0,
      shmemKb = 0,
      sockets = [],
      home,
    }: FakeProcess) => {
      rmSync(join(root, String(pid)), { recursive: true, force: true })
      mkdirSync(join(root, String(pid), 'fd'), { recursive: true })
      const ticks = `${cpu} 0 ${childrenCpu} 0`
      write(`${pid}/stat`, `${pid} (a) b (c) S 1 ${pid} ${pid} 0 -1 0 0 0 0 0 ${ticks} 20 0 1 0 500 0 0\n`)
      write(
        `${pid}/status`,
        `Name:\ta\nVmRSS:\t 999999 kB\nRssAnon:\t ${anonKb} kB\nRssShmem:\t ${shmemKb} kB\n`,
      )
      write(`${pid}/environ`, home === undefined ? '' : `A=b\0HOME=${home}\0`)
      symlinkSync('/dev/null', join(root, String(pid), 'fd', '0'))
      for (const [index, inode] of sockets.entries()) {
        symlinkSync(`socket:[${inode}]`, join(root, String(pid), 'fd', String(index + 3)))
      }
    },
    removeProcess: (pid: number) => rmSync(join(root, String(pid)), { recursive: true }),
  }
}

const socketRow = (inode: number, state: string) =>
  `   0: 0100007F:1F90 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 0 100 0`
