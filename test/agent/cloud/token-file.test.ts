// The token of the box: its modes, its replacement and removal, and paths at which it is not written.
import { chmod, mkdir, open, readdir, readFile, rm, symlink } from 'node:fs/promises'
import t from 'tap'
import { CONFIG, setUpHome, TOKEN, toProfile, toToken } from './support.ts'

t.test('only the box user can read the token', async (t) => {
  const { connect, read, modeOf, at, home } = setUpHome(t)
  t.same(await connect('prod', 'default'), { written: ['prod', 'default'], failed: [] })
  t.equal(await read(TOKEN), toToken('a').content)
  t.equal(await modeOf(TOKEN), '600')
  t.equal(await modeOf('.boxwood/aws'), '700')
  t.equal(await modeOf('.boxwood'), '700')
  t.equal(
    await read(CONFIG),
    `# boxwood: begin (managed; changes in this block are overwritten)
[profile prod]
role_arn = arn:aws:iam::123456789012:role/path/prod
web_identity_token_file = ${home}/.boxwood/aws/token
role_session_name = boxwood-fig
[default]
role_arn = arn:aws:iam::123456789012:role/path/default
web_identity_token_file = ${home}/.boxwood/aws/token
role_session_name = boxwood-fig
# boxwood: end
`,
  )
  t.equal(await modeOf(CONFIG), '600')
  t.equal(await modeOf('.aws'), '700')
  t.same(await readdir(at('.boxwood/aws')), ['token'])
})

t.test('a program that has opened the old token reads it completely', async (t) => {
  const { apply, at, read, modeOf } = setUpHome(t)
  await apply({ token: toToken('old'), profiles: [] })
  await chmod(at(TOKEN), 0o644)
  await chmod(at('.boxwood/aws'), 0o755)
  await using old = await open(at(TOKEN))
  await apply({ token: toToken('new'), profiles: [] })
  t.equal((await old.readFile()).toString(), toToken('old').content)
  t.equal(await read(TOKEN), toToken('new').content)
  t.equal(await modeOf(TOKEN), '600')
  t.equal(await modeOf('.boxwood/aws'), '700')
})

t.test('the token and the profiles of a disconnected role are removed', async (t) => {
  const { connect, disconnect, read, at } = setUpHome(t)
  t.same(await disconnect(), { written: [], failed: [] }, 'of a box that has none')
  t.same(await readdir(at('.')), [], 'which gets no directory')
  await connect('prod', 'test')
  await connect('test')
  t.notMatch(await read(CONFIG), 'profile prod')
  t.match(await read(CONFIG), 'profile test')
  await disconnect()
  t.equal(await read(CONFIG), '')
  t.same(await readdir(at('.boxwood/aws')), [])
})

t.test('the last of several concurrent requests wins', async (t) => {
  const { apply, read } = setUpHome(t)
  const names = Array.from({ length: 20 }, (_, index) => `p${index}`)
  await Promise.all(names.map((name) => apply({ token: toToken(name), profiles: [toProfile(name)] })))
  t.equal(await read(TOKEN), toToken('p19').content)
  t.match(await read(CONFIG), 'profile p19')
  t.equal((await read(CONFIG))?.match(/\[/g)?.length, 1)
})

t.test('links of the user do not redirect the token', async (t) => {
  const { at, write, read, connect, disconnect } = setUpHome(t)
  await write('elsewhere/token', 'of the user')
  await mkdir(at('.boxwood'))
  await symlink('../elsewhere', at('.boxwood/aws'))
  const message = `${at('.boxwood/aws')} is not a directory of the box user. Rename it, and the token is written again.`
  t.same(await connect('prod'), { written: [], failed: [{ name: 'prod', message }] })
  await disconnect()
  t.equal(await read('elsewhere/token'), 'of the user')
})

t.test('replaces whatever the user has put in the place of the file', async (t) => {
  const { at, write, read, apply, modeOf } = setUpHome(t)
  await write('of-the-user', 'content')
  await mkdir(at('.boxwood/aws'), { recursive: true })
  await symlink('../../of-the-user', at(TOKEN))
  await mkdir(at(`${TOKEN}.new`))
  await apply({ token: toToken('a'), profiles: [] })
  t.equal(await readFile(at(TOKEN), 'utf8'), toToken('a').content)
  t.equal(await modeOf(TOKEN), '600')
  t.equal(await read('of-the-user'), 'content')
})

t.test('removes a token in a directory that the user has made read-only', async (t) => {
  const { connect, disconnect, read, at, modeOf } = setUpHome(t)
  await connect('prod')
  await chmod(at('.boxwood/aws'), 0o500)
  await chmod(at('.boxwood'), 0)
  await disconnect()
  t.equal(await read(TOKEN), null)
  // Root can write into any directory.
  t.equal(await modeOf('.boxwood/aws'), '700')
})

t.test('reports a token that cannot be written', async (t) => {
  const { at, apply, connect, disconnect, read } = setUpHome(t)
  await connect('prod', 'test')
  await rm(at(TOKEN))
  await mkdir(at(TOKEN))
  const message = `${at(TOKEN)}: illegal operation on a directory.`
  t.same(await connect('test'), { written: [], failed: [{ name: 'test', message }] })
  t.notMatch(await read(CONFIG), 'profile prod', 'the profiles are updated nevertheless')
  t.same(await disconnect(), { written: [], failed: [] }, 'a directory is no token')
  t.equal(await read(CONFIG), '')
  await t.rejects(apply({ token: toToken('a'), profiles: [] }), { code: 'invalid_path', message })
})
