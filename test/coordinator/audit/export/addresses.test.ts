// The addresses to which the audit log is not delivered, because they are not on the public internet.
import t from 'tap'
import { findAddresses } from '../../../../coordinator/audit/export/addresses.ts'

const PUBLIC = ['1.1.1.1', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450::1']

t.test('one private address of a name is enough to refuse it', async (t) => {
  const { signal } = new AbortController()
  const find = (url: string, addresses: string[], allowsPrivate = false) =>
    findAddresses(new URL(url), { allowsPrivate, resolve: async () => addresses }, signal)
  t.same(await find('https://a.test', PUBLIC), PUBLIC)
  await t.rejects(find('https://a.test', [...PUBLIC, '10.0.0.1']), {
    message: /^The host a\.test has an address/,
  })
  // Forms of 127.0.0.1 and ::1 that URLs accept.
  for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '0177.0.0.1', '[::1]', '[::ffff:127.0.0.1]'])
    await t.rejects(find(`https://${host}`, PUBLIC), { name: 'AddressError' }, host)
  t.same(await find('https://[::1]:8443', [], true), ['::1'])
})

t.test('the error for a name without an address has the name', async (t) => {
  const { signal } = new AbortController()
  const resolve = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }))
  await t.rejects(findAddresses(new URL('https://a.test'), { allowsPrivate: false, resolve }, signal), {
    message: /^The name a\.test cannot be resolved \(ENOTFOUND\)/,
  })
})
