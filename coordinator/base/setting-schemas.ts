// Schemas of settings that several modules have.
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'

/** host:port, with an IPv6 address in brackets. */
const ADDRESS = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^\s:[\]/@]+)):(?<port>\d{1,5})$/

export const addressSchema = z.string().transform((text, context) => {
  const { v6, host = v6, port } = ADDRESS.exec(text)?.groups ?? {}
  if (host !== undefined && Number(port) <= 65_535) return { host, port: Number(port) }
  context.addIssue('must be host:port, such as 127.0.0.1:7070 or [::1]:7070')
  return z.NEVER
})

/** The path that a reverse proxy adds. Its characters need no escape in HTML, in URLs and in shells. */
export const ADDED_PATH = /^(?:\/[A-Za-z0-9._~-]+)*$/

export const oneOf = <const T extends readonly string[]>(choices: T) =>
  z.enum(choices, `must be one of ${choices.join(', ')}`)

/** Empty: none. */
export const addressRanges = z
  .string()
  .transform((text) => (text === '' ? [] : text.split(',').map((entry) => entry.trim())))
  .refine(
    (entries) => entries.every((entry) => ipaddr.isValid(entry) || ipaddr.isValidCIDR(entry)),
    'must be a comma-separated list of IP addresses and ranges, such as 127.0.0.1,10.0.0.0/8',
  )

/** Relative to the working directory. */
export const file = z.string().transform((path) => resolve(path))

export const positiveInteger = z
  .string()
  .regex(/^[1-9]\d{0,11}$/, 'must be an integer between 1 and 999999999999')
  .transform(Number)

export const integerOrZero = z
  .string()
  .regex(/^(0|[1-9]\d{0,5})$/, 'must be an integer between 0 and 999999')
  .transform(Number)

export const onOff = oneOf(['on', 'off']).transform((value) => value === 'on')
