// The block of profiles in ~/.aws/config, next to anything that a user may have in the file.
import { lstat, mkdir, readFile, readlink, rm, stat, symlink, utimes } from 'node:fs/promises'
import t from 'tap'
import { CONFIG, setUpHome, TOKEN, toProfile, toToken } from './support.ts'

const OWN_FILES: Record<string, string | Buffer> = {
  'an empty file': '',
  'a file with a newline at its end': '[profile own]\nregion = eu-central-1\n',
  'a file without a newline at its end': '[profile own]\nregion = eu-central-1',
  'a file of only one newline': '\n',
  'a file with CRLF': '; comment\r\n[profile own]\r\nregion = eu-central-1\r\n\r\n',
  'a file with CRLF and no newline at its end': '[profile own]\r\nregion = eu-central-1',
  'a file with a byte order mark': '\ufeff[profile own]\nregion = eu-central-1\n',
  'a file that is not UTF-8': Buffer.from([0x5b, 0x61, 0x5d, 0x0a, 0x23, 0xff, 0xfe, 0x80, 0x00, 0xc3]),
  'a file with only the first line of a block':
    '# boxwood: begin (managed; changes in this block are overwritten)\n',
  'a file with only the last line of a block': 'a\n# boxwood: end\nb\n',
}

for (const [title, content] of Object.entries(OWN_FILES))
  t.test(`${title} stays byte for byte`, async (t) => {
    const { at, write, connect, disconnect } = setUpHome(t)
    await write(CONFIG, content)
    const own = Buffer.from(content)
    for (const names of [['prod'], ['prod', 'test'], ['test']]) {
      t.same(await connect(...names), { written: names, failed: [] })
      const updated = await readFile(at(CONFIG))
      t.same(updated.subarray(0, own.length), own)
      t.match(
        updated.subarray(own.length).toString(),
        new RegExp(`^\n?# boxwood: begin .*\n\\[profile ${names[0]}\\]\n`),
      )
    }
    await disconnect()
    t.same(await readFile(at(CONFIG)), own)
  })

t.test('text that the user adds around the block stays', async (t) => {
  const { read, write, connect, disconnect } = setUpHome(t)
  await write(CONFIG, '[profile first]\nregion = a')
  await connect('prod')
  await write(CONFIG, `# top\n${await read(CONFIG)}[profile last]\nregion = b`)
  await connect('test')
  t.match(
    await read(CONFIG),
    /^# top\n\[profile first\]\nregion = a\n#.*\n\[profile test\]\n[^[]*# boxwood: end\n\[profile last\]\nregion = b$/,
  )
  await disconnect()
  t.equal(await read(CONFIG), '# top\n[profile first]\nregion = a\n[profile last]\nregion = b')
})

t.test('changed, copied and converted blocks are replaced by one', async (t) => {
  const { read, write, connect, disconnect } = setUpHome(t)
  await connect('prod')
  const block = String(await read(CONFIG))
  await write(CONFIG, `# a\n${block.replace('role_session', 'region = x\nrole_session')}# b\n${block}# c\n`)
  await connect('prod')
  const withRegion = block.replace('# boxwood: end', 'region = x\n# boxwood: end')
  t.equal(await read(CONFIG), `# a\n${withRegion}# b\n# c\n`)
  await write(CONFIG, `# a\r\n${block.replaceAll('\n', '\r\n')}`)
  await disconnect()
  t.equal(await read(CONFIG), '# a\r\n')
  await write(CONFIG, `# boxwood: begin (managed; changes in this block are overwritten)\n# own\n${block}`)
  await connect('test')
  t.match(await read(CONFIG), /^# boxwood: begin .*\n# own\n# boxwood: begin .*\n\[profile test\]/)
  await write(CONFIG, block.trimEnd())
  await disconnect()
  t.equal(await read(CONFIG), '')
})

t.test('settings that the user adds to a profile of the block stay', async (t) => {
  const { write, connect, disconnect, at } = setUpHome(t)
  const readText = () => readFile(at(CONFIG), 'utf8')
  await connect('default', 'prod')
  // The AWS CLI writes the settings of `aws configure set` into the section.
  const settings = 'region = eu-west-1\ns3 =\n  max_concurrent_requests = 20\n# à'
  await write(CONFIG, (await readText()).replace('[profile prod]', `${settings}\n\n[profile prod]\r`))
  t.same(await connect('other', 'default'), { written: ['other', 'default'], failed: [] })
  const updated = await readText()
  t.match(updated, `role_session_name = boxwood-fig\n${settings}\n# boxwood: end\n`)
  t.notMatch(updated, 'prod')
  await connect('other', 'default')
  t.equal(await readText(), updated)
  // Without its section, a setting would belong to another one.
  await connect('other')
  t.notMatch(await readText(), 'region')
  await disconnect()
  t.equal(await readText(), '')
})

t.test('profiles with credentials of the user stay', async (t) => {
  const { read, write, connect, at } = setUpHome(t)
  const credentials = '[default]\naws_access_key_id = A\n[ own ]\r\naws_access_key_id = B\r\n'
  await write('.aws/credentials', credentials)
  const message = (name: string) =>
    `~/.aws/credentials defines the profile ${name} already. Rename it there, or connect the role with another profile.`
  t.same(await connect('default', 'prod', 'own'), {
    written: ['prod'],
    failed: ['default', 'own'].map((name) => ({ name, message: message(name) })),
  })
  t.equal((await read(CONFIG))?.match(/^\[/gm)?.length, 1)
  t.equal(await read('.aws/credentials'), credentials)
  await rm(at('.aws/credentials'))
  await mkdir(at('.aws/credentials'))
  t.same(await connect('default'), { written: ['default'], failed: [] }, 'a file that cannot be read')
})

for (const header of [
  '[profile prod]',
  '[ profile  prod ]',
  '[profile "prod"]',
  "  [profile 'prod'] # mine",
  '\ufeff[profile prod]',
])
  t.test(`the profile of a user stays: ${header}`, async (t) => {
    const { read, write, connect } = setUpHome(t)
    await write(CONFIG, `${header}\r\nregion = x\r\n`)
    const message =
      '~/.aws/config defines the profile prod already. Rename it there, or connect the role with another profile.'
    t.same(await connect('prod', 'pro'), { written: ['pro'], failed: [{ name: 'prod', message }] })
    t.equal((await read(CONFIG))?.match(/\bprod\b.*\]/g)?.length, 1)
    t.same(await connect('prod'), { written: [], failed: [{ name: 'prod', message }] })
    t.equal(await read(CONFIG), `${header}\r\nregion = x\r\n`)
  })

t.test('the default profile of a user stays in both notations', async (t) => {
  const { write, connect } = setUpHome(t)
  for (const header of ['[default]', '[profile default]']) {
    await write(CONFIG, `${header}\n`)
    t.match(await connect('default'), { written: [], failed: [{ name: 'default' }] }, header)
  }
  for (const header of ['[prod]', '[sso-session default]', '# [default]', '[default', '[profile]']) {
    await write(CONFIG, `${header}\n`)
    t.match(await connect('default', 'prod'), { written: ['default', 'prod'], failed: [] }, header)
  }
})

t.test('follows a symbolic link, and keeps the mode of the file', async (t) => {
  const { at, read, write, connect, modeOf, disconnect } = setUpHome(t)
  await write('dotfiles/aws', '[profile own]\n', 0o640)
  await mkdir(at('.aws'))
  await symlink('../dotfiles/aws', at(CONFIG))
  await connect('prod')
  t.match(await read('dotfiles/aws'), /^\[profile own\]\n# boxwood: begin/)
  t.equal(await readlink(at(CONFIG)), '../dotfiles/aws')
  t.equal(await modeOf('dotfiles/aws'), '640')
  await disconnect()
  t.equal(await read('dotfiles/aws'), '[profile own]\n')
})

t.test('writes the target of a dangling link', async (t) => {
  const { at, read, connect } = setUpHome(t)
  await mkdir(at('.aws'))
  await symlink('real-config', at(CONFIG))
  t.match(await connect('prod'), { failed: [] })
  t.match(await read('.aws/real-config'), 'profile prod')
  t.ok((await lstat(at(CONFIG))).isSymbolicLink())
})

t.test('a new token does not change the file', async (t) => {
  const { at, connect, apply } = setUpHome(t)
  await connect('prod')
  await utimes(at(CONFIG), 1, 1)
  await apply({ token: toToken('b'), profiles: [toProfile('prod')] })
  t.equal((await stat(at(CONFIG))).mtimeMs, 1000)
})

t.test('reports a file that cannot be read or written', async (t) => {
  const { at, connect, disconnect, read } = setUpHome(t)
  const message = async () => (await connect('prod')).failed[0]?.message
  await mkdir(at('.aws'))
  await mkdir(at(CONFIG))
  const failure = `${at(CONFIG)} is not a file. Remove or rename it.`
  t.equal(await message(), failure)
  t.same(await disconnect(), { written: [], failed: [{ name: `~/${CONFIG}`, message: failure }] })
  t.equal(await read(TOKEN), null, 'the token is removed nevertheless')

  const large = setUpHome(t)
  await large.write(CONFIG, `#${' '.repeat(1_200_000)}`)
  t.match(await large.connect('prod'), { failed: [{ message: /config is larger than 1 MiB/ }] })

  const linked = setUpHome(t)
  await mkdir(linked.at('.aws'))
  await linked.write('.state/token', 'of the agent')
  await symlink('../.state/token', linked.at(CONFIG))
  t.match(await linked.connect('prod'), { written: [], failed: [{ message: /belongs to the agent/ }] })
  t.equal(await linked.read('.state/token'), 'of the agent')
})

t.test('refuses values that would add lines to the file', async (t) => {
  const { apply, read } = setUpHome(t)
  const valid = toProfile('prod')
  const invalid = [
    { ...valid, name: 'a]\n[default' },
    { ...valid, name: 'a\r' },
    { ...valid, name: 'a ] b' },
    { ...valid, name: '' },
    { ...valid, roleArn: `${valid.roleArn}\ncredential_process = sh` },
    { ...valid, roleArn: 'arn:aws:iam::1:role/x' },
    { ...valid, roleSessionName: 'a\nb' },
    { ...valid, roleSessionName: 'a b' },
  ]
  for (const profile of invalid)
    await t.rejects(
      apply({ token: toToken('a'), profiles: [profile] }),
      { code: 'invalid_request' },
      JSON.stringify(profile),
    )
  const refused = apply({ token: { content: 'secret.token.\n' }, profiles: [] })
  const error: Error = await refused.then(
    () => t.fail('was accepted'),
    (reason) => reason,
  )
  t.match(error, { code: 'invalid_request' })
  t.notMatch(error.message, 'secret')
  await t.rejects(apply({ token: null, profiles: [valid] }), { code: 'invalid_request' })
  await t.rejects(apply({ token: toToken('a'), profiles: [valid, valid] }), { code: 'invalid_request' })
  t.equal(await read(CONFIG), null)
})
