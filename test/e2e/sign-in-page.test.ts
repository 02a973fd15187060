// The page /sign-in in a real browser, and where it continues.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import t from 'tap'
import { startSignInCoordinator } from '../coordinator/identity/sessions/support.ts'
import { NO_BROWSER, startBrowser } from '../support/browser.ts'
import { PROJECT_DIR } from '../support/project.ts'

t.test('the page continues only at a path of its own origin', async (t) => {
  const file = join(PROJECT_DIR, 'coordinator/http/pages/assets/next-path.js')
  const { getNextUrl } = (await import(pathToFileURL(file).href)) as {
    getNextUrl(search: string, origin: string): string | null
  }
  const origin = 'https://boxes.example.com'
  const get = (next: string) => getNextUrl(`?next=${encodeURIComponent(next)}`, origin)
  t.equal(get('/docs?a=b#c'), `${origin}/docs?a=b#c`)
  t.equal(get('/'), `${origin}/`)
  t.equal(get('/..//evil.example'), `${origin}//evil.example`, 'an absolute URL, which has this origin')
  t.equal(getNextUrl('', origin), null)
  for (const next of [
    '',
    'docs',
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '\n//evil.example',
    'https://evil.example',
    'https:/evil.example',
    'javascript:alert(1)',
    'data:text/html,x',
    '/a\\..\\b',
    '/a b',
  ])
    t.equal(get(next), null, JSON.stringify(next))
})

t.test('in a browser', { skip: NO_BROWSER }, async (t) => {
  const coordinator = await startSignInCoordinator(t)
  const { pageUrl: url, addMember, readPrintedCode, finishTasks, printed, send, dataDir } = coordinator
  /** The path that a proxy adds, without a slash at its end. */
  const path = new URL(url).pathname.replace(/\/$/, '')
  await addMember('ann@example.com')
  await addMember('bob@example.com')
  const browser = await startBrowser(t, ['--host-resolver-rules=MAP boxes.example 127.0.0.1'])
  const newPage = async (path: string, origin = url) => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(origin + path)
    return page
  }
  async function requestCode(page: Page, email = 'ann@example.com'): Promise<void> {
    await page.getByLabel('Email address').fill(email)
    await page.getByRole('button', { name: 'Send code' }).click()
    await page.getByLabel('Code').waitFor()
  }
  async function signIn(page: Page, email?: string): Promise<void> {
    await requestCode(page, email)
    await page.getByLabel('Code').fill((await readPrintedCode()).toLowerCase())
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }

  /** Waits until the sign-in has continued at the dashboard, and returns to the page, which shows the session. */
  async function openSession(page: Page, origin = url): Promise<void> {
    await page.waitForURL(`${origin}/`)
    await page.goto(`${origin}/sign-in`)
  }

  await t.test('a member signs in and out', async (t) => {
    const page = await newPage('/sign-in')
    const problems: string[] = []
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => {
      // The browser logs responses such as the 400 to a wrong code.
      if (/Content.Security.Policy/i.test(message.text())) problems.push(message.text())
    })
    t.equal(await page.locator('#insecure').isVisible(), false)
    await requestCode(page)
    await page.getByLabel('Code').fill('AAAA-AAAA')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('The code is wrong or has expired.').waitFor()
    await page.getByLabel('Code').fill(await readPrintedCode())
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await openSession(page)
    await page.getByText('You are signed in as ann@example.com in the workspace Boxwood.').waitFor()
    const [cookie, ...others] = await page.context().cookies()
    t.match(cookie, {
      name: '__Host-boxwood_session',
      domain: '127.0.0.1',
      path: '/',
      httpOnly: true,
      secure: true,
      sameSite: 'Lax',
    })
    t.same(others, [])
    t.equal(await page.evaluate('document.cookie'), '')

    await page.reload()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Email address').waitFor()
    t.same(await page.context().cookies(), [])
    t.same(problems, [])
  })

  await t.test('a visitor comes from the first page, and names are text', async (t) => {
    const { db } = coordinator.instance.context
    const page = await newPage('/')
    await page.getByRole('link', { name: 'The box command', exact: true }).click()
    await page.getByRole('heading', { name: 'The box command', exact: true }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Sign in' }).click()
    await signIn(page)
    await db.updateTable('workspaces').set({ name: '<b id="injected">x</b>' }).execute()
    await openSession(page)
    await page.getByText('in the workspace <b id="injected">x</b>.').waitFor()
    t.equal(await page.locator('#injected').count(), 0)
    await db.updateTable('workspaces').set({ name: 'Boxwood' }).execute()

    await db.deleteFrom('sessions').execute()
    await page.reload()
    await page.getByLabel('Email address').waitFor()
    t.equal(await page.getByText('You are signed in').isVisible(), false)
  })

  await t.test('continues at the path in `next`, and shows it in an open session', async (t) => {
    const page = await newPage(`/sign-in?next=${path}/docs%3Fa=b`)
    await signIn(page)
    await page.waitForURL(`${url}/docs?a=b`)
    await page.goto(`${url}/sign-in?next=${path}/docs`)
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.waitForURL(`${url}/docs`)
    await page.goto(`${url}/sign-in?next=//evil.example`)
    await page.getByText('You are signed in').waitFor()
    t.equal(await page.getByRole('link', { name: 'Continue' }).isVisible(), false)
  })

  await t.test('the owner signs in with a link, once', async (t) => {
    const createLink = async () => {
      const secret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8').trim()
      const { json } = await coordinator.api('POST', '/sign-in/owner/link', { secret }, { key: null })
      return `${url}/sign-in#${json.secret}`
    }
    const link = await createLink()
    const page = await newPage(link.slice(url.length))
    await openSession(page)
    await page.getByText('You are signed in as Owner in the workspace Boxwood.').waitFor()
    await page.goto(link)
    await page.getByRole('heading', { name: 'Boxes', exact: true }).waitFor()
    const other = await newPage('/sign-in')
    await other.getByLabel('Email address').waitFor()
    await other.evaluate(`location.hash = '${new URL(link).hash}'`)
    await other.getByText('This link has been used, or has expired.').waitFor()
    t.equal(await other.locator('#error code').textContent(), 'box open')
    t.equal(other.url(), `${url}/sign-in`, 'the address has no secret')
    await other.getByText('Sign in as the owner of this coordinator').click()
    await other.getByLabel('paste the content of the file sign-in.key').fill(await createLink())
    await other.getByRole('button', { name: 'Sign in as the owner' }).click()
    await openSession(other)
  })

  await t.test('the form of the owner is first while no member has an email address', async (t) => {
    const { db } = coordinator.instance.context
    const users = await db.selectFrom('users').select(['id', 'email']).execute()
    await db.updateTable('users').set({ email: null }).execute()
    const page = await newPage('/sign-in')
    await page.getByLabel('paste the content of the file sign-in.key').waitFor()
    t.equal(await page.getByLabel('Email address').isVisible(), false)
    for (const { id, email } of users)
      await db.updateTable('users').set({ email }).where('id', '=', id).execute()
    await page.reload()
    await page.getByLabel('Email address').waitFor()
    t.equal(await page.getByLabel('paste the content of the file sign-in.key').isVisible(), false)
  })

  await t.test('the owner signs in with the file of the data directory', async (t) => {
    const page = await newPage('/sign-in')
    await page.getByText('Sign in as the owner of this coordinator').click()
    const submit = async (secret: string) => {
      await page.getByLabel('paste the content of the file sign-in.key').fill(secret)
      await page.getByRole('button', { name: 'Sign in as the owner' }).click()
    }
    await submit('bwo_wrong')
    await page.getByText('This is not the secret in sign-in.key.').waitFor()
    await submit(readFileSync(join(dataDir, 'sign-in.key'), 'utf8'))
    await openSession(page)
    await page.getByText('You are signed in as Owner in the workspace Boxwood.').waitFor()
    t.equal(await page.getByLabel('paste the content of the file sign-in.key').isVisible(), false)
  })

  await t.test('localhost works as well', async (t) => {
    const origin = url.replace('127.0.0.1', 'localhost')
    const page = await newPage('/sign-in', origin)
    await signIn(page)
    await openSession(page, origin)
    await page.getByText('You are signed in as ann@example.com').waitFor()
    t.match(await page.context().cookies(), [{ name: '__Host-boxwood_session', domain: 'localhost' }])
  })

  await t.test('an unknown address gets no code, and the same page', async (t) => {
    const page = await newPage('/sign-in')
    await finishTasks()
    const count = printed.length
    await page.getByLabel('Email address').fill('unknown@example.com')
    await page.getByRole('button', { name: 'Send code' }).click()
    await page.getByText('If unknown@example.com is the address of a member').waitFor()
    await finishTasks()
    t.equal(printed.length, count)
  })

  await t.test('over http from another machine, a sentence says why the sign-in fails', async (t) => {
    const foreignUrl = coordinator.url.replace('127.0.0.1', 'boxes.example')
    const page = await newPage('/sign-in', foreignUrl)
    await page.getByText('Browsers store the sign-in only for https pages').waitFor()
    await signIn(page, 'bob@example.com')
    await page.getByText('The browser did not store the session.').waitFor()
    t.same(await page.context().cookies(), [])
  })

  await t.test('the response has the policy of the other pages', async (t) => {
    const { headers, status } = await send('GET', '/sign-in', undefined, { key: null })
    t.equal(status, 200)
    const policy = (await send('GET', '/docs', undefined, { key: null })).headers.get(
      'content-security-policy',
    )
    t.match(policy, /default-src 'none'/)
    t.equal(headers.get('content-security-policy'), policy)
  })
})
