// box share, unshare, shares, and open with a box.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createTempDir } from '../support/temp-dir.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeShares } from './fake-shares.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
await fake.addBox('plum', { observedState: 'suspended', desiredState: 'suspended' })
const shares = addFakeShares(fake)
const NO_DISPLAY = { DISPLAY: '', WAYLAND_DISPLAY: '' }
const box = (...args: string[]) => runBox(fake.url, args, { env: NO_DISPLAY })
const listen = (...ports: [port: number, process: string | null][]) => {
  shares.listening = {
    at: new Date().toISOString(),
    ports: ports.map(([port, process]) => ({ port, process, pid: null })),
  }
}
const MEMBERS_URL = /^http:\/\/fig-3000-\w+\.localhost:7070\/\n$/

t.beforeEach(() => {
  shares.shares = []
  shares.bodies = []
  listen([3000, 'node'])
})

t.test('share prints the address on stdout, and everything else on stderr', async (t) => {
  const { code, stdout, stderr } = await box('share', 'fig', '3000')
  t.equal(code, 0)
  t.match(stdout, MEMBERS_URL)
  t.match(stderr, /Members of the workspace who see fig may open it, until `box unshare`\./)
  t.match(stderr, /works only in browsers on this machine\..*BOXWOOD_SHARE_BASE/)
  t.match(
    stderr,
    /as you without signing in, once.*:\nhttp:\/\/localhost:7070\/share\/open\?slug=fig-3000-\w+&code=c0de\n/,
  )
  t.notMatch(stderr, /Nothing listens/)
  t.same(shares.bodies, [{ port: 3000 }])

  const again = await box('share', 'fig', '3000', '-q')
  t.same(again, { code: 0, stdout, stderr: '' }, 'the same link; -q prints only the address')
})

t.test('the options of a link', async (t) => {
  const anyone = await box('share', 'fig', '3000', '--anyone', '--expires', '2h', '--rewrite-host')
  t.match(anyone.stdout, /^http:\S+\/\?boxwood_secret=s3cret\n$/)
  t.match(
    anyone.stderr,
    /Anyone who has the link may open it, until 2\S+ \(in 2h\)\. Its secret is shown only now\./,
  )
  t.notMatch(anyone.stderr, /code=/, 'a link with a secret needs no sign-in')
  const open = await box('share', 'fig', '3000', '--access', 'public')
  t.match(open.stderr, /Everyone may open it, until .*\(in 7d\)/)
  t.match(open.stderr, /replaces the link for anyone, which does not work any more/)
  t.same(shares.bodies, [
    { port: 3000, access: 'anyone', expiresIn: 7200, rewriteHost: true },
    { port: 3000, access: 'public' },
  ])
  const later = await box('share', 'fig', '3000', '--public', '--expires', '30d')
  t.match(later.stderr, /its expiry is unchanged\. --new replaces it/)
  const json = JSON.parse((await box('share', 'fig', '3000', '--members', '--json')).stdout)
  t.match(json, { share: { access: 'members' }, replaced: { access: 'public' } })
})

t.test('wrong usage', async (t) => {
  for (const [args, error] of [
    [['--expires', '1h'], /A link for members does not expire/],
    [['--expires', '1m', '--anyone'], /--expires must be a duration from 5m to 30d/],
    [['--anyone', '--public'], /cannot be used with/],
    [['--access', 'all'], /Allowed choices are members, anyone, public/],
  ] as const)
    t.match(await box('share', 'fig', '3000', ...args), { code: 2, stdout: '', stderr: error })
  t.match(await box('share', 'fig', '70000'), { code: 2, stderr: /The port must be .* 65535/ })
  t.match(await box('share', 'pear', '80'), { code: 5, stderr: /No such box: 'pear'/ })
  t.same(shares.bodies, [])
})

t.test('the secret of an existing link is not known, and --new replaces the link', async (t) => {
  const first = await box('share', 'fig', '3000', '--anyone', '-q')
  const again = await box('share', 'fig', '3000')
  t.match(again, {
    code: 1,
    stdout: '',
    stderr: /shown only when the link was created\. `box share fig 3000 --new`.*box unshare fig 3000/,
  })
  const setting = await box('share', 'fig', '3000', '--rewrite-host')
  t.match(setting, {
    code: 0,
    stdout: '',
    stderr: /The link is the same\. The server gets `localhost:3000` as Host/,
  })
  const before = shares.shares[0]?.id
  const replaced = await box('share', 'fig', '3000', '--new')
  t.match(replaced.stdout, /\?boxwood_secret=/)
  t.not(replaced.stdout, first.stdout)
  t.match(replaced.stderr, /replaces the link for anyone/)
  t.same(
    shares.bodies.at(-1),
    { port: 3000, access: 'anyone', rewriteHost: true },
    'the audience and the setting stay',
  )
  t.equal(shares.shares.length, 1)
  t.not(shares.shares[0]?.id, before)
})

t.test('--new keeps the link when the coordinator would refuse the new one', async (t) => {
  await box('share', 'fig', '3000')
  shares.modes.anyone = { allowed: false, error: 'share_links_blocked', message: 'Links are off.' }
  t.teardown(() => {
    shares.modes.anyone = { allowed: true }
  })
  t.match(await box('share', 'fig', '3000', '--new', '--anyone'), {
    code: 1,
    stderr: /Links are off\. .*box policies set shareLinks on.*\(share_links_blocked\)/,
  })
  t.match(shares.shares, [{ access: 'members' }])
})

t.test('notes on the server', async (t) => {
  listen()
  t.match((await box('share', 'fig', '3000')).stderr, /Nothing listens on port 3000 of fig yet/)
  t.match((await box('share', 'plum', '3000')).stderr, /plum is suspended\. The page of the link wakes it/)
  t.match((await box('share', 'plum', '80', '--public')).stderr, /plum is suspended: .*box wake plum/)
})

t.test('without a port: the only one, else the ports', async (t) => {
  t.match(await box('share', 'fig', '-q'), { code: 0, stdout: MEMBERS_URL })
  listen([3000, 'node'], [5432, 'postgres\u001b[2J'])
  t.match(await box('share', 'fig'), {
    code: 2,
    stdout: '',
    stderr:
      /2 ports listen on fig\. Type one of:\n +`box share fig 3000` +node\n +`box share fig 5432` +postgres\uFFFD/,
  })
  listen()
  t.match(await box('share', 'fig'), { code: 2, stderr: /Nothing listens on fig\..*`box share fig 3000`/ })
  shares.listening = null
  t.match(await box('share', 'fig'), { code: 2, stderr: /not known\. Type the port: `box share fig 3000`/ })
})

t.test('each refusal gets what to do', async (t) => {
  const hints: [code: string, status: number, args: string[], hint: RegExp][] = [
    ['port_share_disabled', 503, [], /BOXWOOD_SHARES .*`box forward fig 3000`/],
    ['share_links_disabled', 503, ['--anyone'], /BOXWOOD_SHARE_LINKS .*`box share fig 3000`/],
    ['share_links_blocked', 403, ['--public'], /`box policies set shareLinks on`/],
    ['share_links_need_payment', 402, ['--anyone'], /`box share fig 3000` shares it with the members/],
    ['policy_denied', 403, ['--anyone'], /`box policies set anyoneLinksOwnerOnly off`/],
    ['not_allowed', 403, ['--public'], /`box share fig 3000` shares it with the members/],
    ['share_link_limit', 409, ['--anyone'], /`box shares --filter access=anyone .*`box unshare NAME PORT`/],
  ]
  for (const [code, status, args, hint] of hints) {
    shares.refuseNext(code, status, 'Refused.')
    const result = await box('share', 'fig', '3000', ...args)
    t.match(result, { code: 1, stdout: '' }, code)
    t.match(result.stderr, new RegExp(`^box: Refused\\. .*${hint.source}.*\\(${code}\\)\n$`), code)
  }
})

t.test('--open and box open start the browser with the link that needs no sign-in', async (t) => {
  const dir = createTempDir(t, 'open')
  const opened = join(dir, 'opened')
  writeFileSync(join(dir, 'xdg-open'), `#!/bin/sh\necho "$1" >${opened}\n`, { mode: 0o755 })
  const env = { DISPLAY: ':0', PATH: `${dir}:/usr/bin:/bin` }
  for (const args of [
    ['share', 'fig', '3000', '--open'],
    ['open', 'fig', '3000'],
  ]) {
    writeFileSync(opened, '')
    const { code, stdout, stderr } = await runBox(fake.url, args, { env })
    t.match({ code, stdout }, { code: 0, stdout: MEMBERS_URL }, args.join(' '))
    t.notMatch(stderr, /code=/, 'the browser has used the link')
    t.match(readFileSync(opened, 'utf8'), /\/share\/open\?slug=\S+&code=c0de\n$/)
  }
  const noDisplay = await box('open', 'fig', '3000')
  t.match(noDisplay, { code: 0, stdout: MEMBERS_URL, stderr: /No display.*\n.*once.*\nhttp:\S+code=c0de\n/s })
  t.match(JSON.parse((await box('open', 'fig', '3000', '--json')).stdout), { url: /code=c0de$/ })
  await box('share', 'fig', '3000', '--public', '-q')
  await runBox(fake.url, ['open', 'fig', '3000'], { env })
  t.match(readFileSync(opened, 'utf8'), MEMBERS_URL, 'a public link is opened as it is')
})

t.test('shares lists the links', async (t) => {
  t.match(await box('shares'), { code: 0, stdout: '', stderr: /`box share NAME PORT` shares a port/ })
  await box('share', 'fig', '3000', '-q')
  await box('share', 'plum', '80', '--anyone', '-q')
  Object.assign(shares.shares[0] ?? {}, { openCount: 3, lastOpenedAt: new Date().toISOString() })
  const { stdout } = await box('shares')
  t.match(stdout, /^NAME +PORT +ACCESS +URL +EXPIRES +OPENED\n/)
  t.match(stdout, /^fig +3000 +members +http:\S+localhost:7070\/ +never +3 times, \d+s ago$/m)
  t.match(stdout, /^plum +80 +anyone +http:\S+\/\?boxwood_secret=… +in 7d +never$/m)
  t.equal((await box('shares', 'fig', '-q')).stdout, `${shares.shares[0]?.id}\n`)
  t.equal((await box('shares', '-q', '--filter', 'access=anyone')).stdout, `${shares.shares[1]?.id}\n`)
  t.match(JSON.parse((await box('shares', '--json', '--filter', 'port=80')).stdout), {
    enabled: true,
    shares: [{ port: 80 }],
  })
})

t.test('unshare finds a link by box and port, address, host name, slug and id', async (t) => {
  const ways: ((link: { id: string; slug: string; origin: string }) => string[])[] = [
    () => ['fig', '3000'],
    () => ['fig'],
    () => [fig.id, '3000'],
    ({ origin }) => [`${origin}/path?boxwood_secret=x`],
    ({ origin }) => [new URL(origin).host],
    ({ slug }) => [slug],
    ({ id }) => [id],
    ({ id }) => [id.slice(0, 16)],
  ]
  for (const getArgs of ways) {
    await box('share', 'fig', '3000', '-q')
    const [link] = shares.shares
    const args = getArgs(link as NonNullable<typeof link>)
    t.match(
      await box('unshare', ...args),
      { code: 0, stderr: 'fig 3000: the link is ended\n' },
      args.join(' '),
    )
    t.same(shares.shares, [])
  }
  t.match(await box('unshare', 'fig', '3000'), { code: 5, stderr: /Port 3000 of fig is not shared/ })
  t.match(await box('unshare', 'fig'), { code: 5, stderr: /No port of fig is shared/ })
  t.match(await box('unshare', 'http://x.localhost/'), { code: 5, stderr: /No such link/ })
  t.match(await box('unshare', 'pear', '80'), { code: 5, stderr: /No such box: 'pear'/ })
  t.match(await box('unshare'), { code: 2, stderr: /box unshare NAME PORT/ })
})

t.test('unshare with several links, and --all', async (t) => {
  for (const [name, port] of [
    ['fig', '3000'],
    ['fig', '80'],
    ['plum', '80'],
  ] as const)
    await box('share', name, port, '-q')
  t.match(await box('unshare', 'fig'), {
    code: 2,
    stderr:
      /fig has 2 links\. Type one of:\n +`box unshare fig 3000`\n +`box unshare fig 80`\n +`box unshare fig --all`/,
  })
  t.match(await box('unshare', 'fig', '--all'), { code: 0, stderr: /fig 3000: .*\nfig 80: / })
  t.match(shares.shares, [{ hostname: 'plum' }])
  const pty = runBoxInPty(t, fake.url, '$BOX unshare --all')
  await pty.waitFor(/End the links of plum 80\? \[y\/N\]/)
  pty.type('n\r')
  t.match(await pty.waitForExit(), { exitCode: 1 })
  t.equal(shares.shares.length, 1)
  t.match(JSON.parse((await box('unshare', '--all', '--json')).stdout), { port: 80, revoked: true })
  t.match(await box('unshare', '--all'), { code: 0, stderr: 'No ports are shared.\n' })
})
