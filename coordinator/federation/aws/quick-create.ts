// The URL that opens a stack in the console of AWS with all its parameters.

/** IAM is global; the console and the function of the stack need a region. */
const DEFAULT_REGION = 'us-east-1'

export type QuickCreate = {
  templateUrl: string
  region: string | null
  stackName: string
  /** Name → value. The names are those of install/aws/boxwood-role.yaml. */
  parameters: Readonly<Record<string, string>>
}

/** The parameters are in the fragment of the URL, which browsers do not send to the server. */
export function createQuickCreateUrl({ templateUrl, region, stackName, parameters }: QuickCreate): string {
  const name = region ?? DEFAULT_REGION
  const query = new URLSearchParams({ templateURL: templateUrl, stackName })
  for (const [key, value] of Object.entries(parameters)) query.set(`param_${key}`, value)
  return `https://${name}.${getConsoleDomain(name)}/cloudformation/home?region=${name}#/stacks/quickcreate?${query}`
}

/** China and GovCloud have consoles and accounts of their own. */
function getConsoleDomain(region: string): string {
  if (region.startsWith('cn-')) return 'console.amazonaws.cn'
  return region.startsWith('us-gov-') ? 'console.amazonaws-us-gov.com' : 'console.aws.amazon.com'
}
