// What boxes are to clouds: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { ADDED_PATH } from '../base/setting-schemas.ts'

const oidcIssuer = z.string().transform((text, context) => {
  const url = URL.parse(text)
  const path = url?.pathname.replace(/\/$/, '') ?? ''
  if (url?.protocol === 'https:' && url.port === '' && ADDED_PATH.test(path) && text === url.origin + path)
    return text
  context.addIssue(
    'must be an https URL in lowercase without a port, a query and a slash at its end, such as https://boxes.example.com/oidc',
  )
  return z.NEVER
})

const templateUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && /(^|\.)s3[.-]/.test(url.hostname) && url.hash === ''
}, 'must be the https URL of an object in S3, such as https://bucket.s3.us-east-1.amazonaws.com/boxwood-role.yaml')

const endpointUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
}, 'must be an http or https URL, such as https://sts.eu-central-1.amazonaws.com')

const awsRegion = z
  .string()
  .regex(/^[a-z]{2}(-[a-z]+)+-\d{1,2}$/, 'must be a region of AWS, such as eu-central-1')

export const FEDERATION_SETTINGS = defineSettings({
  oidcIssuer: {
    variable: 'BOXWOOD_OIDC_ISSUER',
    default: null,
    shownDefault: 'none',
    description:
      'the public https URL whose documents AWS reads to verify the tokens of boxes; without it, boxes get no AWS roles',
    schema: oidcIssuer,
  },
  awsTemplateUrl: {
    variable: 'BOXWOOD_AWS_TEMPLATE_URL',
    default: null,
    shownDefault: 'none',
    description:
      'the https URL in S3 of install/aws/boxwood-role.yaml; without it, there is no link that creates a role',
    schema: templateUrl,
  },
  awsStsEndpoint: {
    variable: 'AWS_ENDPOINT_URL_STS',
    default: null,
    shownDefault: 'that of AWS_REGION',
    description: 'the endpoint of STS at which roles are verified, as the SDKs of AWS read it',
    schema: endpointUrl,
  },
  awsRegion: {
    variable: 'AWS_REGION',
    default: null,
    shownDefault: 'the global endpoint',
    description:
      'the region of AWS in which roles are verified, and in which the link that creates a role opens',
    schema: awsRegion,
  },
})

export type FederationSettings = SettingsOf<typeof FEDERATION_SETTINGS>
