// Requests to the server. A failure is an ApiError with the server's sentence.

export class ApiError extends Error {
  constructor({ code, message, hint }, status) {
    super(message);
    Object.assign(this, { code, hint, status });
  }
}

export const unreachable = () => new ApiError({ code: "UNREACHABLE", message: "ragchat does not answer.",
                                                hint: "Is `ragchat web` still running?" }, 0);

async function send(method, path, body, signal) {
  const isJson = body !== undefined && !(body instanceof Blob);
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      headers: isJson ? { "content-type": "application/json" } : {},
      body: isJson ? JSON.stringify(body) : body,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  let failure;
  try {
    failure = (await response.json()).error;
  } catch {
    failure = { code: "FAILED", message: `The server answered with ${response.status}.` };
  }
  throw new ApiError(failure, response.status);
}

export const get = async (path, signal) => (await send("GET", path, undefined, signal)).json();
export const post = async (path, body = {}, signal) => (await send("POST", path, body, signal)).json();
export const put = async (path, file, signal) => (await send("PUT", path, file, signal)).json();
export const remove = async (path) => (await send("DELETE", path)).json();

// The events of a stream of JSON lines. Aborting `signal` stops the work, except an answer, which goes on.
export async function* stream(path, body, signal, method = "POST") {
  const response = await send(method, path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) yield JSON.parse(line);
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError({ code: "CONNECTION_LOST", message: "The connection to ragchat was lost.",
                         hint: "Is `ragchat web` still running?" }, 0);
  } finally {
    reader.releaseLock();
  }
}

// The address of a path with parameters; empty ones are left out.
export function address(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}
