// The names of the box's users.
import { readFileSync, statSync } from 'node:fs'
import { ignoreUnreadable } from '../../process-table.ts'

/** Other names, which useradd does not permit, are not shown: the number of the user is. */
const USER_NAME = /^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}$/
/** /etc/passwd is a file of the box, which may have any size. */
const MAX_BYTES = 1024 * 1024

export type UserNames = {
  /** Reads the file again when it has changed. The result returns the name of a uid, or its number. */
  read(): (uid: number) => string
}

export function createUserNames(path = '/etc/passwd'): UserNames {
  let names = new Map<number, string>()
  let version: string | undefined
  return {
    read() {
      const stats = ignoreUnreadable(() => statSync(path))
      const isUsable = stats?.isFile() === true && stats.size <= MAX_BYTES
      const latest = isUsable ? `${stats.mtimeMs} ${stats.size} ${stats.ino}` : undefined
      if (latest !== version) {
        const text = isUsable ? ignoreUnreadable(() => readFileSync(path, 'latin1')) : undefined
        names = parsePasswd(text ?? '')
      }
      version = latest
      return (uid) => names.get(uid) ?? String(uid)
    },
  }
}

function parsePasswd(text: string): Map<number, string> {
  const names = new Map<number, string>()
  for (const line of text.split('\n')) {
    const [name = '', , uid = ''] = line.split(':')
    // The first line of a uid counts, as in getpwuid.
    if (USER_NAME.test(name) && /^\d+$/.test(uid) && !names.has(Number(uid))) names.set(Number(uid), name)
  }
  return names
}
