// A page that is opened from the disk may not start a Worker, and the search needs one.
// There, this runs the worker's script in a hidden frame, which has its own global scope.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<script>" +
        "self.postMessage = data => parent.dispatchEvent(new MessageEvent('frame', {data, source: self}));" +
        "self.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done, failed) => {" +
        "const script = document.createElement('script');" +
        "script.src = url; script.onload = done; script.onerror = failed; document.body.appendChild(script);})), Promise.resolve());" +
        "<\/script><body><script src=\"" + url + "\"><\/script></body>";
      this.ready = new Promise(done => this.frame.addEventListener("load", done, { once: true }));
      document.body.appendChild(this.frame);
      window.addEventListener("frame", event => {
        if (event.source !== this.frame.contentWindow) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
