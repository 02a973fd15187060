// The names of the files of a volume in an archive, and which of them are omitted.
import t from 'tap'
import { toArchiveNames } from '../../../../../coordinator/providers/docker/archives/volume-files.ts'

t.test('names are relative to the root of the archive, as Docker and Podman name them', async (t) => {
  const file = (name: string) => ({ type: 'file', name, linkName: '' }) as const
  t.same(toArchiveNames('home', './', file('./a/b')), { name: 'home/a/b' })
  t.same(toArchiveNames('home', 'root/', file('root/a')), { name: 'home/a' })
  t.same(toArchiveNames('state', '/', file('/settings')), { name: 'state/settings' })
  const link = { type: 'hard link', name: './b', linkName: './a' } as const
  t.same(toArchiveNames('home', './', link), { name: 'home/b', linkName: 'home/a' })
})

t.test('devices and the token for AWS are omitted', async (t) => {
  const token = './.boxwood/aws/token'
  t.equal(toArchiveNames('home', './', { type: 'device', name: './null', linkName: '' }), null)
  for (const name of [token, `${token}.new`])
    t.equal(toArchiveNames('home', './', { type: 'file', name, linkName: '' }), null, name)
  const link = { type: 'hard link', name: './copy', linkName: token } as const
  t.equal(toArchiveNames('home', './', link), null, 'a hard link to the token, whose content is omitted')
  t.not(toArchiveNames('state', './', { type: 'file', name: token, linkName: '' }), null)
  t.not(toArchiveNames('home', './', { type: 'file', name: './.boxwood/aws/tokens', linkName: '' }), null)
})
