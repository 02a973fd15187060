// Removes the entries of access control lists that tar cannot set from a tar stream, so that the others are set. tar would
// lose the whole list, and keep its mask as the permissions of the group: `group::r--` with `mask::rwx` would become rwx.
import {
  type PaxEntry,
  type PaxRecord,
  PaxStream,
  readNumber,
  replaceRecords,
  withNumber,
} from './pax-stream.ts'

const ACCESS = 'SCHILY.acl.access'
const DEFAULT = 'SCHILY.acl.default'
const MODE = { offset: 100, length: 8 }
/** The id of an entry that had none where tar has read the list: another user than that of the box. */
const UNKNOWN_ID = '4294967295'

export class AclFilter {
  readonly #canSet: (id: string) => boolean
  readonly #stream = new PaxStream((entry) => this.#change(entry))

  /** @param hasUserNamespace whether tar writes the files in a user namespace, which has root only: the user of the box */
  constructor({ hasUserNamespace }: { hasUserNamespace: boolean }) {
    this.#canSet = (id) => (hasUserNamespace ? id === '0' || id === 'root' : id !== UNKNOWN_ID)
  }

  push(data: Buffer): Buffer {
    return this.#stream.push(data)
  }

  #change({ block, extended, records }: PaxEntry): Buffer[] {
    let changedBlock = block
    const changed = records.flatMap((record): PaxRecord[] => {
      if (record.key !== ACCESS && record.key !== DEFAULT) return [record]
      const list = narrowList(record.value, this.#canSet)
      if (list === 'unchanged') return [record]
      if (record.key === ACCESS && list.group !== null) {
        const mode = readNumber(block, MODE.offset, MODE.length)
        changedBlock = withNumber(block, MODE.offset, MODE.length, (mode & ~0o070) | (list.group << 3))
      }
      return list.text === null ? [] : [{ key: record.key, value: list.text }]
    })
    const isChanged = changed.some((record, index) => record !== records[index])
    if (!isChanged && changed.length === records.length) return [extended, block]
    return [replaceRecords(extended, changed), changedBlock]
  }
}

type NarrowedList = {
  /** null: a list that is not valid. */
  text: string | null
  /** The permissions of the group, as three bits; null: a mask limits them. */
  group: number | null
}

/** @param text such as `user::rw-\nuser:1:r--\ngroup::r--\nmask::rwx\nother::---\n` */
export function narrowList(text: string, canSet: (id: string) => boolean): NarrowedList | 'unchanged' {
  const entries = text
    .split(/[\n,]/)
    .filter((line) => line !== '')
    .map((line) => /^(user|group|mask|other):([^:]*):([r-])([w-])([x-])/.exec(line))
  if (entries.some((entry) => entry === null)) return { text: null, group: 0 }
  const list = entries.flatMap((entry) => {
    const [, tag = '', id = '', ...bits] = entry ?? []
    return [{ tag, id, bits: bits.reduce((sum, bit) => sum * 2 + (bit === '-' ? 0 : 1), 0) }]
  })
  const kept = list.filter(({ id }) => id === '' || canSet(id))
  if (kept.length === list.length) return 'unchanged'
  const format = (lines: typeof list) =>
    lines.map(({ tag, id, bits }) => `${tag}:${id}:${formatBits(bits)}\n`).join('')
  if (kept.some(({ id }) => id !== '')) return { text: format(kept), group: null }
  const bitsOf = (wanted: string, otherwise: number) =>
    kept.find(({ tag }) => tag === wanted)?.bits ?? otherwise
  const group = bitsOf('group', 0) & bitsOf('mask', 7)
  const plain = kept.filter(({ tag }) => tag !== 'mask')
  return {
    text: format(plain.map((entry) => (entry.tag === 'group' ? { ...entry, bits: group } : entry))),
    group,
  }
}

const formatBits = (bits: number): string =>
  [...'rwx'].map((letter, index) => ((bits & (4 >> index)) === 0 ? '-' : letter)).join('')
