// The pure parts of the page of files: paths, entries, contents, edits and uploads.

import t from 'tap'
import { type BoxwoodError, createError } from '../../../client/http/errors.ts'
import { applyLineEnd, findLineEnd, readContent } from '../../../dashboard/data/file-content.ts'
import {
  formatFilesPath,
  getType,
  hasPath,
  joinPath,
  listParents,
  parseFilesQuery,
  resolveTarget,
  sortEntries,
} from '../../../dashboard/data/files.ts'
import { findLanguage } from '../../../dashboard/data/languages.ts'
import { quoteShell } from '../../../dashboard/data/quote-shell.ts'
import { openText, saveText } from '../../../dashboard/data/text-edits.ts'
import { createUploads, MAX_UPLOAD_BYTES, type Upload } from '../../../dashboard/data/uploads.ts'
import { showHiddenInOutput } from '../../../dashboard/data/visible-text.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('the grammar of a file, by its name', (t) => {
  const names = [
    'a.test.ts',
    'Makefile',
    'x.PY',
    '.bashrc',
    'Dockerfile',
    'README.md',
    'constructor',
    'a.b',
    '',
  ]
  t.same(names.map(findLanguage), [
    ...['typescript', 'makefile', 'python', 'bash', 'dockerfile', 'markdown'],
    ...[null, null, null],
  ])
  t.end()
})

const createEntry = (name: string, fields: Partial<FileEntry> = {}): FileEntry => ({
  name,
  type: 'file',
  size: 1,
  mode: '0644',
  uid: 0,
  gid: 0,
  owner: 'root',
  group: 'root',
  mtime: '2026-01-01T00:00:00.000Z',
  ...fields,
})

t.test('paths and entries', async (t) => {
  t.equal(joinPath('/', 'a'), '/a')
  t.equal(joinPath('/a', 'b'), '/a/b')
  t.equal(quoteShell('~/a'), "'~/a'")
  t.equal(resolveTarget('/a', 'b/c'), '/a/b/c')
  for (const path of ['/x', '~/x']) t.equal(resolveTarget('/a', path), path)
  t.same(listParents('/a/ b'), [
    { name: '/', path: '/' },
    { name: 'a', path: '/a' },
    { name: ' b', path: '/a/ b' },
  ])
  t.same(listParents('/'), [{ name: '/', path: '/' }])
  const path = formatFilesPath('fig', '/tmp/&#?', 'a b')
  t.same(parseFilesQuery(path.slice(path.indexOf('?'))), { path: '/tmp/&#?', file: 'a b' })
  t.same(parseFilesQuery(''), { path: '~', file: null })
  t.same([{ name: 'a' }, { name: '\u{fffd}', nameBase64: '/w==' }, { name: 'a\nb' }].map(hasPath), [
    true,
    false,
    false,
  ])
  t.equal(getType(createEntry('a', { type: 'symlink', targetType: 'directory' })), 'directory')
  t.equal(getType(createEntry('a', { type: 'symlink', targetType: null })), null)
  const entries = [
    createEntry('a', { mtime: null }),
    createEntry('b', { size: 9 }),
    createEntry('c', { mtime: '2026-02-01T00:00:00.000Z' }),
  ]
  const names = (sort: 'name' | 'size' | 'changed') => sortEntries(entries, sort).map(({ name }) => name)
  t.same(
    [names('name'), names('size'), names('changed')],
    [
      ['a', 'b', 'c'],
      ['b', 'a', 'c'],
      ['c', 'b', 'a'],
    ],
  )
  t.same(['/a b', "it's", 'a.txt', '', '$(x)', "\u202ea'\n\u{e0001}"].map(quoteShell), [
    "'/a b'",
    `'it'\\''s'`,
    'a.txt',
    "''",
    "'$(x)'",
    `"$(printf '\\342\\200\\256a\\047\\012\\363\\240\\200\\201')"`,
  ])
})

t.test('contents', async (t) => {
  const kindOf = (bytes: Buffer | string) =>
    readContent({ encoding: 'base64', content: Buffer.from(bytes as string, 'latin1').toString('base64') })
  t.match(kindOf('\x89PNG\r\n\x1a\nrest'), { kind: 'image', type: 'image/png' })
  t.match(kindOf('\xff\xd8\xff\xe0'), { kind: 'image', type: 'image/jpeg' })
  t.match(kindOf('RIFF\x80\x00\x00\x00WEBPVP8 '), { kind: 'image', type: 'image/webp' })
  t.same(kindOf('RIFF\x80\x00\x00\x00WAVE'), { kind: 'binary' })
  t.match(readContent({ encoding: 'utf8', content: '<svg onload="x()"/>' }), { kind: 'text' })
  t.same(readContent({ encoding: 'utf8', content: 'a\0b' }), { kind: 'binary' })
  t.same(['a\nb', '', 'a\r\nb\r\n', 'a\r\nb\n', 'a\rb'].map(findLineEnd), ['\n', '\n', '\r\n', null, null])
  t.equal(applyLineEnd('a\nb', '\r\n'), 'a\r\nb')
  t.equal(showHiddenInOutput('a\tb\n\u202ec\r'), 'a\tb\n⟨U+202E⟩c⟨U+000D⟩')
})

t.test('an edit keeps the line ends, and does not replace a file that has changed', async (t) => {
  const path = '/a'
  let file: { content: string; mtime: string } | null = { content: 'a\r\nb\r\n', mtime: '1' }
  const files = {
    find: async () => file && createEntry('a', { mtime: file.mtime, size: file.content.length }),
    read: async () => ({
      ok: true as const,
      type: 'file.read' as const,
      path,
      encoding: 'utf8' as const,
      size: 1,
      mode: '0644',
      content: file?.content ?? '',
    }),
    async writeText(_path: string, content: string) {
      file = { content, mtime: `${file?.mtime}+` }
      return { ok: true as const, type: 'file.written' as const, path, size: content.length }
    },
  }
  const draft = await openText(files, path)
  t.equal(draft.text, 'a\nb\n')
  const first = await saveText(files, { ...draft, text: 'x\n' }, { overwrite: false })
  t.equal(file?.content, 'x\r\n')
  if (!first.isSaved) throw new Error('not saved')
  file = { content: 'theirs', mtime: 'later' }
  const mine = { origin: first.origin, text: 'mine\n' }
  t.match(await saveText(files, mine, { overwrite: false }), { isSaved: false, current: { mtime: 'later' } })
  t.equal(file.content, 'theirs')
  t.match(await saveText(files, mine, { overwrite: true }), { isSaved: true })
  t.equal(file?.content, 'mine\r\n')
  file = null
  t.same(await saveText(files, mine, { overwrite: false }), { isSaved: false, current: null })
  file = { content: 'a\rb', mtime: '1' }
  await t.rejects(openText(files, path), { code: 'mixed_line_ends' })
  const long = { ...mine, text: 'é'.repeat(LIMITS.inlineFileBytes / 2 + 1) }
  await t.rejects(saveText(files, long, { overwrite: true }), { code: 'payload_too_large' })
})

t.test('uploads are sent one after the other', async (t) => {
  t.equal(MAX_UPLOAD_BYTES, LIMITS.transferBytes)
  const calls: string[] = []
  const failures = new Map<string, BoxwoodError[]>()
  let list: readonly Upload[] = []
  let block: Promise<void> | undefined
  const uploads = createUploads<string>({
    async upload(path, content, { signal, onProgress }) {
      const failure = failures.get(path)?.shift()
      if (failure) throw failure
      onProgress(1)
      const aborted = new Promise<never>((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      )
      if (block) await Promise.race([block, aborted])
      calls.push(`${path}=${content}`)
    },
    exists: async (path) => path === '/d/old',
    makeDirectory: async (path) => calls.push(`mkdir ${path}`),
    wait: async (ms) => void calls.push(`wait ${ms}`),
    onChange(value) {
      list = value
    },
  })
  const states = () => list.map(({ path, state }) => `${path} ${state}`)
  const settled = () =>
    waitUntil('no upload is active', () =>
      list.every(({ state }) => state !== 'waiting' && state !== 'sending'),
    )
  const entry = (path: string, size = 1) => ({ path, size, content: 'x' })

  failures.set('/d/limited', [createError({ code: 'rate_limited', message: '', status: 429 })])
  failures.set('/d/broken', [createError({ code: 'disk_full', message: 'Full.', status: 507 })])
  uploads.add(
    ['/d/new', '/d/old', '/d/limited', '/d/broken'].map((path) => entry(path)),
    ['/d'],
  )
  uploads.add([entry('/huge', MAX_UPLOAD_BYTES + 1)], [])
  await settled()
  t.same(calls, ['mkdir /d', '/d/new=x', 'wait 1000', '/d/limited=x'])
  t.same(states(), ['/d/new done', '/d/old exists', '/d/limited done', '/d/broken failed', '/huge failed'])
  for (const { id, state } of list) if (state === 'exists' || state === 'failed') uploads.retry(id)
  await settled()
  t.same(calls.slice(4), ['/d/old=x', '/d/broken=x'])
  t.same(states().slice(-1), ['/huge failed'], 'a file that is too large is not sent')
  uploads.clear()
  t.same(list, [])

  const { promise, resolve } = Promise.withResolvers<void>()
  block = promise
  uploads.add([entry('/slow'), entry('/next')], [])
  await waitUntil('the first is sent', () => list[0]?.sent === 1)
  uploads.cancel(list[0]?.id ?? 0)
  await waitUntil('the second is sent', () => list[1]?.sent === 1)
  resolve()
  await settled()
  t.same(states(), ['/slow canceled', '/next done'])
})
