// Explains why the coordinator cannot be reached: what happened, then what to do.

const TLS_CODES = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ERR_TLS|ERR_SSL|EPROTO/

export function describeConnectionError(url: string, error: Error): string {
  const { code = '' } = error as NodeJS.ErrnoException
  const { hostname, host } = new URL(url)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `The name ${hostname} cannot be resolved. Check the DNS servers of this machine in /etc/resolv.conf.`
  if (code === 'CERT_NOT_YET_VALID' || code === 'CERT_HAS_EXPIRED')
    return `The certificate of ${host} is not valid at the time of this machine's clock, ${new Date().toISOString()}. Set the clock, or renew the certificate.`
  if (TLS_CODES.test(code))
    return `The certificate of ${host} is not trusted: ${error.message}. If a private authority has issued it, install with --ca FILE.`
  if (code === 'ECONNREFUSED')
    return `${host} refuses connections. Check that the coordinator runs and that its address is right.`
  return `${host} cannot be reached: ${error.message}. Check the network, the firewall and the proxy of this machine.`
}
