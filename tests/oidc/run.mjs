// Cuebook against a real OpenID provider (npm oidc-provider) on this machine: signing in with the code flow, access tokens
// of every algorithm that is taken, and logout through the provider.
//
//   node run.mjs PATH/TO/cuebook
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Provider from 'oidc-provider'

const cuebook = process.argv[2]
if (!cuebook) throw new Error('usage: node run.mjs PATH/TO/cuebook')

const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createSocket()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

const key = (kind, options, extra) => ({
  ...generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' }),
  use: 'sig',
  ...extra,
})

const people = {
  'u-1': { preferred_username: 'mina', email: 'mina@example.com', email_verified: true, groups: ['sre'] },
  'u-2': { preferred_username: 'root', email: 'root@example.com', email_verified: true, groups: [] },
}
let whoSignsIn = 'u-1'

const providerPort = await freePort()
const port = await freePort()
const issuer = `http://127.0.0.1:${providerPort}`
const url = `http://127.0.0.1:${port}`
const audience = `${url}/mcp`

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'cuebook',
      client_secret: 'a-secret-of-this-test',
      redirect_uris: [`${url}/login/oidc/callback`],
      backchannel_logout_uri: `${url}/login/oidc/logout`,
      backchannel_logout_session_required: true,
    },
    {
      client_id: 'machine',
      client_secret: 'another-secret-of-this-test',
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    },
  ],
  jwks: {
    keys: [
      key('rsa', { modulusLength: 2048 }, { kid: 'rsa' }),
      key('ec', { namedCurve: 'P-256' }, { kid: 'ec' }),
      key('ed25519', {}, { kid: 'ed' }),
    ],
  },
  cookies: { keys: ['of this test'] },
  pkce: { required: () => true },
  scopes: ['openid', 'profile', 'email', 'cuebook:read', 'cuebook:admin'],
  claims: { openid: ['sub', 'sid'], profile: ['preferred_username', 'groups'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false,
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, ...people[sub] }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({
      clientId: ctx.oidc.client.clientId,
      accountId: ctx.oidc.session.accountId,
    })
    grant.addOIDCScope('openid profile email')
    await grant.save()
    return grant
  },
  features: {
    devInteractions: { enabled: false },
    backchannelLogout: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'cuebook:read cuebook:admin',
        audience,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: resource.split(':').pop() } },
      }),
    },
  },
})
const callback = provider.callback()
const providerServer = createServer(async (request, response) => {
  if (!request.url.startsWith('/interaction/')) return callback(request, response)
  await provider.interactionFinished(request, response, { login: { accountId: whoSignsIn } })
})
await new Promise((resolve) => providerServer.listen(providerPort, '127.0.0.1', resolve))

const folder = mkdtempSync(join(tmpdir(), 'cuebook-oidc-'))
const dataDir = join(folder, 'data')
const environment = {
  ...process.env,
  CUEBOOK_ACCESS_ENABLED: 'true',
  CUEBOOK_ACCESS_OAUTH_ISSUER: issuer,
  CUEBOOK_ACCESS_OIDC_ISSUER: issuer,
  CUEBOOK_ACCESS_OIDC_CLIENT_ID: 'cuebook',
  CUEBOOK_ACCESS_OIDC_CLIENT_SECRET: 'a-secret-of-this-test',
}
const server = spawn(cuebook, ['--log', 'debug', 'serve', '--listen', `127.0.0.1:${port}`, '--data-dir', dataDir], {
  env: environment,
})
let log = ''
server.stderr.on('data', (data) => (log += data))
let greeting = ''
await new Promise((resolve, reject) => {
  server.stdout.on('data', (data) => {
    greeting += data
    if (greeting.includes('stop ')) resolve()
  })
  server.on('exit', () => reject(new Error(`it ended: ${greeting}${log}`)))
})

/** A browser: cookies by host and port, redirects by hand. */
class Browser {
  jar = new Map()
  async open(address, options = {}) {
    const { origin } = new URL(address)
    const cookies = this.jar.get(origin) ?? new Map()
    const response = await fetch(address, {
      redirect: 'manual',
      ...options,
      headers: {
        accept: 'text/html',
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...options.headers,
      },
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair] = cookie.split(';')
      const at = pair.indexOf('=')
      if (/max-age=0/i.test(cookie) || /expires=Thu, 01 Jan 1970/i.test(cookie)) cookies.delete(pair.slice(0, at))
      else cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    this.jar.set(origin, cookies)
    return response
  }
  /** Follows redirects until there are none, or until `stop` says so of an address. */
  async follow(address, stop = () => false) {
    for (let hops = 0; hops < 15; hops++) {
      if (stop(address)) return { address }
      const response = await this.open(address)
      const location = response.headers.get('location')
      if (!location) return { address, response, text: await response.text() }
      address = new URL(location, address).href
    }
    throw new Error('too many redirects')
  }
  async me() {
    const response = await this.open(`${url}/api/v1/access/me`, { headers: { accept: 'application/json' } })
    return response.status === 200 ? response.json() : response.status
  }
}

let passed = 0
const check = async (what, work) => {
  try {
    await work()
    passed++
    console.log(`ok ${what}`)
  } catch (error) {
    console.log(`FAILED ${what}\n${error.stack}\n${log.split('\n').slice(-15).join('\n')}`)
    process.exitCode = 1
  }
}

const isCallback = (address) => address.startsWith(`${url}/login/oidc/callback`)
const browser = new Browser()

await check('the first admin signs in with the provider, by the link of the start', async () => {
  const link = greeting.match(/http\S+\/setup\?code=\S+/)[0]
  const page = await (await browser.open(link)).text()
  const leave = page.match(/href="(\/login\/oidc\?code=[^"]+)"/)[1]
  await browser.follow(`${url}${leave}`)
  const me = await browser.me()
  assert.equal(me.name, 'mina')
  assert.deepEqual(me.groups, ['sre'])
  assert.deepEqual(me.grants, [{ role: 'admin', path: '**' }])
  assert.equal((await browser.open(link)).status, 403)
})

await check('what did not begin here is not finished here', async () => {
  whoSignsIn = 'u-1'
  const other = new Browser()
  const { address } = await other.follow(`${url}/login/oidc?next=/settings`, isCallback)
  assert.equal((await new Browser().open(address)).status, 403, 'in another browser')
  const wrong = new URL(address)
  wrong.searchParams.set('state', 'x'.repeat(43))
  assert.equal((await other.open(wrong.href)).status, 403, 'another state')
  assert.equal((await other.open(address)).status, 403, 'what was kept is gone')
  assert.equal(await other.me(), 401)
})

await check('a code is worth nothing a second time, nor with another verifier', async () => {
  const one = new Browser()
  const two = new Browser()
  const first = await one.follow(`${url}/login/oidc`, isCallback)
  const second = await two.follow(`${url}/login/oidc`, isCallback)
  const swapped = new URL(second.address)
  swapped.searchParams.set('code', new URL(first.address).searchParams.get('code'))
  assert.equal((await two.open(swapped.href)).status, 403)
  assert.equal(await two.me(), 401)
})

await check('the way back stays on this server', async () => {
  const other = new Browser()
  const { address } = await other.follow(`${url}/login/oidc?next=//evil.example/x`, isCallback)
  const back = await other.open(address)
  assert.equal(back.headers.get('location'), '/')
})

await check('whoever the provider calls like somebody here is somebody else', async () => {
  whoSignsIn = 'u-2'
  const add = await browser.open(`${url}/api/v1/access/people`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-cuebook': '1' },
    body: JSON.stringify({ name: 'root' }),
  })
  assert.equal(add.status, 200)
  const other = new Browser()
  await other.follow(`${url}/login/oidc`)
  const me = await other.me()
  assert.equal(me.name, 'root-2')
  assert.deepEqual(me.grants, [])
})

const token = async (alg, scope) => {
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from('machine:another-secret-of-this-test').toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource: `urn:alg:${alg}`, scope }),
  })
  const body = await response.json()
  assert.equal(response.status, 200, JSON.stringify(body))
  return body.access_token
}
const bearer = (token) => fetch(`${url}/api/v1/access/me`, { headers: { authorization: `Bearer ${token}` } })

for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
  await check(`an access token signed with ${alg} is taken`, async () => {
    const response = await bearer(await token(alg, 'cuebook:read'))
    const me = await response.json()
    assert.equal(response.status, 200, JSON.stringify(me))
    assert.equal(me.name, 'machine')
    assert.equal(me.at_most, 'reader')
  })
}
for (const alg of ['RS384', 'RS512', 'PS512']) {
  await check(`one signed with ${alg} is not`, async () => {
    const response = await bearer(await token(alg, 'cuebook:read'))
    assert.equal(response.status, 401)
    assert.match(response.headers.get('www-authenticate'), /invalid_token/)
  })
}

await check('logging out at the provider ends the session here, and no other', async () => {
  whoSignsIn = 'u-1'
  const other = new Browser()
  await other.follow(`${url}/login/oidc`)
  assert.equal((await other.me()).name, 'mina')
  const page = await (await browser.open(`${issuer}/session/end`)).text()
  const xsrf = page.match(/name="xsrf" value="([^"]+)"/)[1]
  await browser.open(`${issuer}/session/end/confirm`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ xsrf, logout: 'yes' }),
  })
  assert.equal(await browser.me(), 401)
  assert.equal((await other.me()).name, 'mina')
})

await check('a forged logout ends nothing', async () => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = {
    iss: issuer, aud: 'cuebook', sub: 'u-1', iat: 1, exp: Math.floor(Date.now() / 1000) + 60, jti: 'x',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  }
  for (const forged of [
    `${part({ alg: 'none' })}.${part(claims)}.`,
    `${part({ alg: 'RS256', kid: 'rsa' })}.${part(claims)}.${'A'.repeat(342)}`,
    await token('RS256', 'cuebook:read'),
    '',
  ]) {
    const response = await fetch(`${url}/login/oidc/logout`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ logout_token: forged }),
    })
    assert.equal(response.status, 400, forged)
  }
})

await check('no secret is in the log', async () => {
  assert.ok(log.length > 500)
  for (const secret of ['a-secret-of-this-test', greeting.match(/code=(\S+)/)[1], await token('RS256', 'cuebook:read')]) {
    assert.ok(!log.includes(secret), secret)
  }
})

server.removeAllListeners('exit')
const ended = new Promise((resolve) => server.on('exit', resolve))
server.kill('SIGTERM')
await ended
providerServer.closeAllConnections()
providerServer.close()
rmSync(folder, { recursive: true })
console.log(`${passed} passed`)
