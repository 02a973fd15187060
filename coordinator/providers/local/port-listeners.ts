// Finds the processes of this machine that listen on a TCP port.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { listPids } from '../parts/proc.ts'

/** The state TCP_LISTEN in /proc/net/tcp. */
const LISTENING = '0A'

/** Returns the pids. Processes whose open files this user may not read are missing. */
export function listPortListeners(port: number): number[] {
  const sockets = new Set(
    ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listListeningSockets(table, port)),
  )
  if (sockets.size === 0) return []
  return listPids().filter((pid) => listOpenFiles(pid).some((file) => sockets.has(file)))
}

/** Returns the sockets as the links in /proc/PID/fd name them. */
function listListeningSockets(table: string, port: number): string[] {
  const lines = readFileSync(table, 'latin1').split('\n').slice(1)
  return lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/)
    const isListening = state === LISTENING && Number.parseInt(local.split(':')[1] ?? '', 16) === port
    return isListening ? [`socket:[${inode}]`] : []
  })
}

function listOpenFiles(pid: number): string[] {
  const dir = `/proc/${pid}/fd`
  return ignoreErrors(() => readdirSync(dir), []).map((name) =>
    ignoreErrors(() => readlinkSync(`${dir}/${name}`), ''),
  )
}

/** The process has exited or closed the file, or this user may not read its files. */
function ignoreErrors<T>(read: () => T, fallback: T): T {
  try {
    return read()
  } catch {
    return fallback
  }
}
