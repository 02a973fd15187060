// Access control lists in forks and restores: what the user of the box may not set is removed, and no permission gets wider.
import { execFileSync } from 'node:child_process'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { AclFilter, narrowList } from '../../../../../coordinator/providers/parts/archives/acl-filter.ts'
import { requires } from '../../../../support/requires.ts'
import { archiveKey, BOX_UIDS, changeOwner, createBoxFiles, openArchives } from './support.ts'

const skip = requires('setfacl') || requires('getfacl')
const setfacl = (...args: string[]) => execFileSync('setfacl', args)
/** The entries of the list, without comments. */
const getfacl = (path: string) =>
  execFileSync('getfacl', ['-ncEp', path], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line !== '')

t.test('the permissions of the group are never wider than in the list', { skip }, async (t) => {
  const { archives } = openArchives(t)
  const source = createBoxFiles(t)
  const inSource = (name: string) => join(source.home, name)
  const lists: Record<string, string> = {
    foreign: 'u:1:r,g:5:rwx',
    'foreign-user': 'u:1:rwx',
    'mask-below-group': 'g::rw,u:1:r,m::r',
    plain: 'g::rw',
  }
  for (const name of Object.keys(lists)) writeFileSync(inSource(name), name, { mode: 0o640 })
  mkdirSync(inSource('directory'), { mode: 0o750 })
  changeOwner(source)
  for (const [name, list] of Object.entries(lists)) setfacl('-m', list, inSource(name))
  setfacl('-m', 'u:1:rwx,d:u:1:rwx,d:g::r,d:o::-', inSource('directory'))
  setfacl('-m', `u:${source.uid ?? 0}:rw,u:1:rw`, inSource('plain'))
  await archives.capture(source, archiveKey('a'))
  const target = createBoxFiles(t, BOX_UIDS[1])
  await archives.restore(archiveKey('a'), target)
  const inTarget = (name: string) => join(target.home, name)

  for (const name of ['foreign', 'foreign-user'])
    t.same(getfacl(inTarget(name)), ['user::rw-', 'group::r--', 'other::---'], name)
  t.same(getfacl(inTarget('mask-below-group')), ['user::rw-', 'group::r--', 'other::---'])
  t.equal(statSync(inTarget('foreign')).mode & 0o777, 0o640)
  t.match(getfacl(inTarget('plain')), [
    'user::rw-',
    /^user:\d+:rw-$/,
    'group::rw-',
    'mask::rw-',
    'other::---',
  ])
  t.same(getfacl(inTarget('directory')), [
    'user::rwx',
    'group::r-x',
    'other::---',
    'default:user::rwx',
    'default:group::r--',
    'default:other::---',
  ])
})

t.test('removes the entries that cannot be set, and narrows the group', async (t) => {
  const narrow = (text: string) => narrowList(text, (id) => id === '0')
  t.equal(narrow('user::rw-\ngroup::r--\nother::---\n'), 'unchanged')
  t.equal(narrow('user::rw-\nuser:0:rwx\ngroup::r--\nmask::rwx\nother::---\n'), 'unchanged')
  t.same(narrow('user::rw-\nuser:1:rwx\ngroup::rw-\nmask::r-x\nother::r--\n'), {
    text: 'user::rw-\ngroup::r--\nother::r--\n',
    group: 4,
  })
  t.same(narrow('user::rw-\nuser:0:r--\nuser:4294967295:rwx\ngroup::r--\nmask::rwx\nother::---\n'), {
    text: 'user::rw-\nuser:0:r--\ngroup::r--\nmask::rwx\nother::---\n',
    group: null,
  })
  t.same(narrow('user::rw-,group:5:rwx,group::---,mask::rwx,other::---'), {
    text: 'user::rw-\ngroup::---\nother::---\n',
    group: 0,
  })
  t.same(narrow('garbage'), { text: null, group: 0 })
})

t.test('a stream without lists is not changed', async (t) => {
  const source = createBoxFiles(t)
  for (const name of ['a', 'ü'.repeat(100)]) writeFileSync(join(source.home, name), name.repeat(1000))
  const stream = execFileSync('tar', ['-c', '--format=pax', '-C', source.dir, 'home'])
  for (const bytes of [1, 511, 513, 10_000]) {
    const filter = new AclFilter({ hasUserNamespace: true })
    const parts: Buffer[] = []
    for (let at = 0; at < stream.length; at += bytes) parts.push(filter.push(stream.subarray(at, at + bytes)))
    t.ok(Buffer.concat(parts).equals(stream), `${bytes} bytes at once`)
  }
})
